// The only file that includes LibTorch's Gloo (c10d).
#define USE_C10D_GLOO 1
#include "sync/transport/gloo/group.h"

#include <ATen/ATen.h>
#include <sched.h>

#include <cstring>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>

#include "sync/transport/gloo/gloo_pair.h"
#include "sync/transport/gloo/gloo_socket.h"
#include "sync/transport/gloo/links.h"
#include "sync/transport/gloo/quiet_stdout.h"
#include "sync/transport/gloo/rendezvous.h"

namespace rivulet::sync::gloo_door {
namespace {

using ProcessGroup = c10d::ProcessGroupGloo;
using WorkPtr = c10::intrusive_ptr<c10d::Work>;

// Longer than any view. A wait() that timed out would close all pairs of this rank, including healthy ones.
constexpr auto for_ever = std::chrono::hours(24 * 365);

at::Tensor tensor_over(const void* data, std::size_t bytes) {
  return at::from_blob(const_cast<void*>(data), {static_cast<std::int64_t>(bytes)}, at::kByte);
}

class GlooWork final : public Work {
 public:
  explicit GlooWork(WorkPtr work) : work_(std::move(work)) {}
  Waited wait(std::string& why) override {
    try {
      return work_->wait(for_ever) ? Waited::done : Waited::woken;
    } catch (const std::exception& e) {
      why = plain(e.what());
      return Waited::broken;
    }
  }
  void wake() noexcept override { work_->abort(); }

 private:
  WorkPtr work_;
};

struct LastWords {
  std::uint32_t rank = 0;
  std::uint32_t code = 0;
};

/// Adapts the view's address book to c10d's store. Connecting needs set, get and wait; keys end in a rank.
class BookStore final : public c10d::Store {
 public:
  explicit BookStore(Rendezvous& rendezvous) : rendezvous_(rendezvous) {}
  c10::intrusive_ptr<c10d::Store> clone() override { return c10::make_intrusive<BookStore>(rendezvous_); }
  using c10d::Store::set;
  void set(const std::string& key, const std::vector<std::uint8_t>& value) override {
    rendezvous_.publish(key, value);
  }
  std::vector<std::uint8_t> get(const std::string& key) override { return rendezvous_.look_up(key); }
  void wait(const std::vector<std::string>& keys) override {
    for (const auto& key : keys) get(key);
  }
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds&) override { wait(keys); }
  bool check(const std::vector<std::string>& keys) override {
    for (const auto& key : keys) {
      if (!rendezvous_.has(key)) return false;
    }
    return true;
  }
  std::int64_t add(const std::string&, std::int64_t) override {
    throw std::logic_error("no counters in this store");
  }
  bool deleteKey(const std::string&) override { return false; }
  std::int64_t getNumKeys() override { return 0; }

 private:
  Rendezvous& rendezvous_;
};

/// Sets SCHED_BATCH, which Gloo's loop thread inherits: with it, that thread has far fewer unnecessary
/// wake-ups.
class BatchScheduling {
 public:
  BatchScheduling() {
    const sched_param none{};
    before_ = sched_getscheduler(0);
    sched_setscheduler(0, SCHED_BATCH, &none);
  }
  ~BatchScheduling() {
    const sched_param none{};
    if (before_ == SCHED_OTHER) sched_setscheduler(0, SCHED_OTHER, &none);
  }
  BatchScheduling(const BatchScheduling&) = delete;
  BatchScheduling& operator=(const BatchScheduling&) = delete;

 private:
  int before_ = SCHED_OTHER;
};

/// Must outlive the pairs of its view.
class LinksKept {
 public:
  explicit LinksKept(std::shared_ptr<Links> links) : links_(std::move(links)) {}
  ~LinksKept() { links_->forget(); }
  LinksKept(const LinksKept&) = delete;
  LinksKept& operator=(const LinksKept&) = delete;
  Links* operator->() const { return links_.get(); }

 private:
  std::shared_ptr<Links> links_;
};

class GlooGroup final : public Group {
 public:
  GlooGroup(std::unique_ptr<DoorKept> door, std::unique_ptr<LinksKept> links,
            c10::intrusive_ptr<ProcessGroup> group, std::uint32_t rank, std::uint32_t world)
      : door_(std::move(door)),
        links_(std::move(links)),
        last_words_(world),
        group_(std::move(group)),
        rank_(rank),
        sentinels_(world) {
    for (std::uint32_t peer = 0; peer < world; ++peer) {
      if (peer != rank)
        sentinels_[peer] = post(false, peer, sentinel_tag, &last_words_[peer], sizeof(LastWords));
    }
  }
  ~GlooGroup() override {
    sentinels_.clear();
    farewells_.clear();
  }

  Result<std::unique_ptr<Work>> send(std::uint32_t peer, int tag, std::span<const std::byte> bytes) override {
    return checked_post(true, peer, data_tag(tag, rank_ < peer), bytes.data(), bytes.size());
  }
  Result<std::unique_ptr<Work>> receive(std::uint32_t peer, int tag, std::span<std::byte> bytes) override {
    return checked_post(false, peer, data_tag(tag, peer < rank_), bytes.data(), bytes.size());
  }
  std::uint64_t arrived(std::uint32_t peer, int tag) const override {
    return (*links_)->arrived(peer, static_cast<Lane>(tag));
  }
  std::optional<std::string> broken(std::uint32_t peer) const override {
    return (*links_)->data_broken(peer);
  }
  Pulse pulse(std::uint32_t peer) override;
  void log(const Obituary& last_words) override;

 private:
  WorkPtr post(bool sending, std::uint32_t peer, int tag, const void* data, std::size_t bytes) {
    std::vector<at::Tensor> tensors{tensor_over(data, bytes)};
    const int rank = static_cast<int>(peer);
    (*links_)->posted(sending, peer, tag % meshes);
    return sending ? group_->send(tensors, rank, tag) : group_->recv(tensors, rank, tag);
  }
  Result<std::unique_ptr<Work>> checked_post(bool sending, std::uint32_t peer, int tag, const void* data,
                                             std::size_t bytes) {
    try {
      return std::unique_ptr<Work>(std::make_unique<GlooWork>(post(sending, peer, tag, data, bytes)));
    } catch (const std::exception& e) {
      return Error{ErrorCode::peer_lost, plain(e.what())};
    }
  }

  // Order of destruction: works before the group, and after it the members that its loop thread accesses.
  // That thread is joined when the group is destroyed, also if the constructor fails.
  std::unique_ptr<DoorKept> door_;
  std::unique_ptr<LinksKept> links_;
  std::vector<LastWords> logged_;
  std::vector<LastWords> last_words_;
  c10::intrusive_ptr<ProcessGroup> group_;
  std::uint32_t rank_;
  std::vector<WorkPtr> sentinels_;  ///< by rank; empty for this rank and for peers that sent an obituary
  std::vector<WorkPtr> farewells_;
};

/// Calls abort() first, so that wait() only polls: false if nothing has arrived, an exception if the
/// connection is closed.
Pulse GlooGroup::pulse(std::uint32_t peer) {
  Pulse pulse;
  WorkPtr& sentinel = sentinels_[peer];
  pulse.refused = (*links_)->refusal(peer);
  try {
    if (!sentinel) return pulse;
    sentinel->abort();
    if (!sentinel->wait(for_ever)) {
      // An abort hides a message that has already arrived: poll again if its bytes are here.
      const std::atomic_ref<std::uint32_t> code(last_words_[peer].code);
      if (code.load(std::memory_order_relaxed) == 0 || !sentinel->wait(for_ever)) return pulse;
    }
    sentinel.reset();
    const LastWords& words = last_words_[peer];
    const bool silence = words.code == 1 + static_cast<std::uint32_t>(ErrorCode::timed_out);
    pulse.reported = Obituary{words.rank < last_words_.size() ? words.rank : peer,
                              silence ? ErrorCode::timed_out : ErrorCode::peer_lost};
  } catch (const std::exception& e) {
    pulse.broken = true;
    pulse.why = plain(e.what());
  }
  return pulse;
}

void GlooGroup::log(const Obituary& last_words) {
  logged_.assign(1, {last_words.rank, static_cast<std::uint32_t>(last_words.code) + 1});
  for (std::uint32_t peer = 0; peer < sentinels_.size(); ++peer) {
    if (peer == rank_) continue;
    try {
      farewells_.push_back(post(true, peer, sentinel_tag, logged_.data(), sizeof(LastWords)));
    } catch (const std::exception&) {
      continue;  // this peer is lost too; the others still get the obituary
    }
  }
}

}  // namespace

void Cancel::set() {
  const std::lock_guard lock(mutex_);
  set_ = true;
  changed_.notify_all();
}

bool Cancel::wait_for(Duration d) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, d, [this] { return set_; });
}

namespace {

std::unique_ptr<Group> connect_behind(std::unique_ptr<DoorKept> door, const std::shared_ptr<PeerDoor>& opened,
                                      const std::shared_ptr<Links>& links, Rendezvous& rendezvous,
                                      const ConnectRequest& request) {
  auto kept = std::make_unique<LinksKept>(links);
  const QuietStdout quiet;
  auto options =
      ProcessGroup::Options::create(std::chrono::duration_cast<std::chrono::milliseconds>(request.deadline));
  options->threads = 1;  // point-to-point operations use no thread
  {
    const BatchScheduling batch;
    const BehindDoor behind(opened);
    options->devices.assign(meshes, ProcessGroup::createDeviceForHostname(request.address, false));
    if (!behind.attached())
      throw std::runtime_error("the Gloo of this LibTorch bypasses the checks of incoming connections");
  }
  const auto world = static_cast<int>(request.view.world());
  const auto rank = static_cast<int>(request.view.rank);
  c10::intrusive_ptr<ProcessGroup> group;
  {
    const Links::Connecting connecting(links);
    group =
        c10::make_intrusive<ProcessGroup>(c10::make_intrusive<BookStore>(rendezvous), rank, world, options);
  }
  links->wait_until_attached(std::size_t{meshes} * (request.view.world() - 1));
  door->door().shut();
  return std::make_unique<GlooGroup>(std::move(door), std::move(kept), std::move(group), request.view.rank,
                                     request.view.world());
}

}  // namespace

std::unique_ptr<Group> connect_group(const ConnectRequest& request, ConnectFailure& failure) {
  auto opened = PeerDoor::open(request.address, request.port, request.deadline);
  if (!opened) {
    failure = {opened.error(), -1};
    return nullptr;
  }
  if (const std::string lacks = missing_in_gloo(); !lacks.empty()) {
    failure = {{ErrorCode::unavailable, "this LibTorch's Gloo lacks " + lacks}, -1};
    return nullptr;
  }
  const auto links = std::make_shared<Links>(request);
  auto door = std::make_unique<DoorKept>(opened.value());
  Rendezvous rendezvous(request, door->door(), *links);
  try {
    return connect_behind(std::move(door), opened.value(), links, rendezvous, request);
  } catch (const NotConnected& e) {
    failure = e.failure();
  } catch (const std::exception& e) {
    failure = rendezvous.explain(plain(e.what()));
  }
  return nullptr;
}

std::size_t process_group_bytes() noexcept {
  return sizeof(ProcessGroup);
}

}  // namespace rivulet::sync::gloo_door
