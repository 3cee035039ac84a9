#include "sync/collective/gloo/waiter.h"

#include <pthread.h>

namespace rivulet::sync::gloo_door {

Waiter::Waiter(ChunkSink& sink, const std::string& thread_name) : sink_(sink), thread_([this] { run(); }) {
  pthread_setname_np(thread_.native_handle(), thread_name.substr(0, 15).c_str());
}

Waiter::~Waiter() {
  stop();
}

void Waiter::add(std::uint32_t channel, Chunk chunk) {
  const std::lock_guard lock(mutex_);
  if (stop_) return;
  channels_[channel].push_back(std::move(chunk));
  changed_.notify_one();
}

void Waiter::look_elsewhere() {
  const std::lock_guard lock(mutex_);
  if (channels_.size() > 1 && current_ != nullptr) current_->wake();
}

void Waiter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
    if (current_ != nullptr) current_->wake();
    changed_.notify_one();
  }
  if (thread_.joinable()) thread_.join();
  channels_.clear();
}

/// The channel it was at, or the one after it in a circle.
std::deque<Chunk>& Waiter::next_channel() {
  auto it = channels_.lower_bound(channel_);
  if (it == channels_.end()) it = channels_.begin();
  channel_ = it->first;
  return it->second;
}

void Waiter::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (channels_.empty()) {
      changed_.wait(lock);
      continue;
    }
    std::deque<Chunk>& chunks = next_channel();
    const std::uint32_t channel = channel_;
    current_ = chunks.front().work.get();
    lock.unlock();
    std::string why;
    const Waited waited = current_->wait(why);
    lock.lock();
    current_ = nullptr;
    if (waited == Waited::woken) {
      ++channel_;
      continue;
    }
    const Chunk chunk = std::move(chunks.front());
    chunks.pop_front();
    if (chunks.empty()) channels_.erase(channel);
    lock.unlock();
    if (waited == Waited::done) {
      sink_.chunk_done(*chunk.operation, chunk.bytes);
    } else {
      sink_.chunk_broken(*chunk.operation, why);
    }
    lock.lock();
  }
}

}  // namespace rivulet::sync::gloo_door
