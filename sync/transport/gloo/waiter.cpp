#include "sync/transport/gloo/waiter.h"

#include <pthread.h>

#include <utility>

namespace rivulet::sync::gloo_door {

Waiter::Waiter(ChunkSink& sink, std::string thread_name)
    : sink_(sink), name_(thread_name.substr(0, 15)) {}  // the kernel's limit

Waiter::Waiter(ChunkSink& sink, std::unique_ptr<Inbox> inbox) : sink_(sink), inbox_(std::move(inbox)) {}

Waiter::~Waiter() {
  stop();
}

void Waiter::add(std::uint32_t channel, Chunk chunk, bool at_once) {
  const std::lock_guard lock(mutex_);
  if (stop_) return;
  if (channels_.empty()) ticks_ = 0;
  channels_[channel].push_back(std::move(chunk));
  if (at_once && inbox_ == nullptr) rouse();
}

void Waiter::rouse() {
  roused_ = true;
  if (thread_.joinable()) {
    changed_.notify_one();
    return;
  }
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), name_.c_str());
}

bool Waiter::wait_for(std::uint32_t channel, const Operation& operation) {
  std::unique_lock lock(mutex_);
  take_over(lock);
  bool waited = false;
  while (!stop_ && !operation.done.load(std::memory_order_acquire) && channels_.contains(channel)) {
    waited = true;
    if (!wait_at(channel, Who::requester, lock)) break;
  }
  requested_ = false;
  ticks_ = 0;
  left_.notify_all();
  if (roused_) changed_.notify_one();
  return waited;
}

/// Interrupts the thread's wait. The thread continues when chunks are left that no caller waits for.
void Waiter::take_over(std::unique_lock<std::mutex>& lock) {
  requested_ = true;
  roused_ = false;
  ticks_ = 0;
  if (waiting_ == Who::thread) current_->wake();
  left_.wait(lock, [this] { return waiting_ == Who::nobody; });
}

void Waiter::tick() {
  std::unique_lock lock(mutex_);
  ++ticks_;
  const bool turn_is_over = waiting_ == Who::requester ? ticks_ > 1 : channels_.size() > 1;
  if (waiting_ != Who::nobody && turn_is_over) current_->wake();
  if (inbox_ != nullptr) return hand_out(lock);
  if (waiting_ == Who::nobody && !requested_ && !roused_ && !channels_.empty() && ticks_ > 1) rouse();
}

void Waiter::hand_out() {
  std::unique_lock lock(mutex_);
  if (inbox_ != nullptr) hand_out(lock);
}

void Waiter::hand_out(std::unique_lock<std::mutex>& lock) {
  const auto broken = channels_.empty() ? std::nullopt : inbox_->broken();
  while (!stop_ && !requested_ && waiting_ == Who::nobody && !channels_.empty()) {
    const std::uint32_t channel = channels_.begin()->first;
    if (ended_ < inbox_->arrived())
      wait_at(channel, Who::thread, lock);  // does not block
    else if (broken)
      end(channel, Who::thread, broken, lock);
    else
      return;
  }
}

void Waiter::stop() {
  {
    std::unique_lock lock(mutex_);
    stop_ = true;
    if (current_ != nullptr) current_->wake();
    changed_.notify_one();
    left_.wait(lock, [this] { return !requested_; });
  }
  if (thread_.joinable()) thread_.join();
  channels_.clear();
}

/// Returns the current channel if it has chunks, else the next one, cyclically.
std::uint32_t Waiter::next_channel() {
  auto it = channels_.lower_bound(channel_);
  if (it == channels_.end()) it = channels_.begin();
  return channel_ = it->first;
}

/// Waits for the oldest chunk of the channel. Returns false if woken before it was done.
bool Waiter::wait_at(std::uint32_t channel, Who who, std::unique_lock<std::mutex>& lock) {
  std::deque<Chunk>& chunks = channels_.find(channel)->second;
  Work* const work = chunks.front().work.get();
  current_ = work;
  waiting_ = who;
  lock.unlock();
  std::string why;
  const Waited waited = work->wait(why);
  lock.lock();
  current_ = nullptr;
  waiting_ = Who::nobody;
  left_.notify_all();
  if (waited == Waited::woken) return false;
  end(channel, who, waited == Waited::broken ? std::optional(why) : std::nullopt, lock);
  return true;
}

/// Removes the oldest chunk of the channel and reports its result.
void Waiter::end(std::uint32_t channel, Who who, std::optional<std::string> broken,
                 std::unique_lock<std::mutex>& lock) {
  std::deque<Chunk>& chunks = channels_.find(channel)->second;
  const Chunk chunk = std::move(chunks.front());
  chunks.pop_front();
  if (chunks.empty()) channels_.erase(channel);
  ++ended_;
  lock.unlock();
  if (broken)
    sink_.chunk_broken(*chunk.operation, *broken);
  else if (sink_.chunk_done(*chunk.operation, chunk.bytes) && who == Who::thread)
    sink_.announce();
  lock.lock();
}

void Waiter::run() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (channels_.empty()) roused_ = false;
    if (roused_ && !requested_) {
      if (!wait_at(next_channel(), Who::thread, lock)) ++channel_;
    } else {
      changed_.wait(lock);
    }
  }
}

}  // namespace rivulet::sync::gloo_door
