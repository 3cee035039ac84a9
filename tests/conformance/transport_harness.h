#pragma once
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/rng.h"
#include "sync/transport/transport.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

/// Shared by the transport suites: ranks as threads, an address book, waits for tickets.
namespace rivulet::testing {

/// Maximum time between an event and its detection: a sanitizer makes everything about ten times slower.
inline Duration noticed_within(Duration d) {
  return (std::string_view(RIVULET_SANITIZE).empty() ? deadline_slack : 10) * d;
}

/// A Wake on which a thread can sleep.
class SleepWake final : public Wake {
 public:
  void notify() noexcept override {
    const std::lock_guard lock(mutex_);
    ++notified_;
    changed_.notify_all();
  }
  void sleep(Duration longest) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, longest, [this] { return notified_ != seen_; });
    seen_ = notified_;
  }
  [[nodiscard]] std::uint64_t notified() const {
    const std::lock_guard lock(mutex_);
    return notified_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t notified_ = 0;
  std::uint64_t seen_ = 0;
};

/// One file per key in a folder, so that threads and processes can share it.
class FolderBook final : public sync::AddressBook {
 public:
  explicit FolderBook(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Status set(std::uint64_t token, const std::string& key, std::span<const std::byte> value) override {
    const auto path = path_of(token, key);
    auto temporary = path;
    temporary += ".new";
    std::ofstream(temporary, std::ios::binary)
        .write(reinterpret_cast<const char*>(value.data()), static_cast<std::streamsize>(value.size()));
    std::filesystem::rename(temporary, path);
    return ok();
  }
  std::vector<std::byte> get(std::uint64_t token, const std::string& key, bool& found) override {
    std::ifstream in(path_of(token, key), std::ios::binary);
    found = static_cast<bool>(in);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    std::vector<std::byte> value(text.size());
    std::memcpy(value.data(), text.data(), text.size());
    return value;
  }

 private:
  [[nodiscard]] std::filesystem::path path_of(std::uint64_t token, std::string key) const {
    for (char& c : key) {
      if (c == '/') c = '_';
    }
    return folder_ / (std::to_string(token) + "-" + key);
  }
  std::filesystem::path folder_;
};

inline sync::ViewSpec view_of(std::uint32_t world, std::uint32_t rank, std::uint64_t token = 7) {
  sync::ViewSpec view;
  view.number = 1;
  view.token = token;
  view.rank = rank;
  std::vector<std::string> members;
  for (std::uint32_t r = 0; r < world; ++r)
    members.push_back("device-" + std::string(1, static_cast<char>('a' + r)));
  view.members = std::move(members);
  return view;
}

/// Bytes that identify sender, receiver and time.
inline std::vector<std::byte> pattern(std::size_t size, std::uint64_t seed) {
  std::vector<std::byte> bytes(size);
  Rng rng(seed);
  for (std::size_t i = 0; i < size; i += 8) {
    const std::uint64_t x = rng.next();
    std::memcpy(bytes.data() + i, &x, std::min<std::size_t>(8, size - i));
  }
  return bytes;
}

/// One rank's endpoint, used by its thread. Collects errors for the test's own thread.
struct Node {
  sync::Transport& transport;
  SleepWake& wake;
  const Clock& clock;
  std::vector<std::string>& problems;

  [[nodiscard]] std::uint32_t rank() const { return transport.rank(); }
  [[nodiscard]] std::uint32_t world() const { return transport.world(); }
  bool expect(bool condition, const std::string& what) {
    if (!condition) problems.push_back("rank " + std::to_string(rank()) + ": " + what);
    return condition;
  }
  Progress wait(const std::function<Progress()>& poll, Duration longest = std::chrono::seconds(20)) {
    const TimePoint end = clock.now() + longest;
    Progress p = poll();
    while (p == Progress::pending && clock.now() < end) {
      wake.sleep(std::chrono::milliseconds(1));
      p = poll();
    }
    return p;
  }
  Progress wait(sync::Ticket ticket, Duration longest = std::chrono::seconds(20)) {
    return wait([&] { return transport.poll(ticket); }, longest);
  }
  bool finish(sync::Ticket ticket, const std::string& what) {
    const TimePoint end = clock.now() + std::chrono::seconds(20);
    Progress p = transport.poll(ticket);
    while (p == Progress::pending && clock.now() < end) {
      if (!transport.wait(ticket)) wake.sleep(std::chrono::milliseconds(1));
      p = transport.poll(ticket);
    }
    return expect(p == Progress::done,
                  what + (p == Progress::failed ? ": " + transport.error().message : ": pending"));
  }
  /// All ranks finish before any closes.
  void goodbye() {
    std::vector<std::byte> word(8), words(8 * world());
    std::vector<sync::Ticket> tickets;
    for (std::uint32_t r = 0; r < world(); ++r) {
      if (r == rank()) continue;
      tickets.push_back(transport.receive(r, sync::Lane::shutdown, std::span(words).subspan(8 * r, 8)));
      tickets.push_back(transport.send(r, sync::Lane::shutdown, word));
    }
    for (const auto ticket : tickets) finish(ticket, "goodbye");
  }
};

using Play = std::function<void(Node&)>;

/// Runs `play` once per rank, each on its own thread with its own transport of one view. Returns errors.
/// `polite`: ends with goodbye().
template <class Net>
std::vector<std::string> play_group(Net& net, std::uint32_t world, const Play& play, bool polite = true,
                                    std::uint64_t token = 7) {
  const RealClock clock;
  std::vector<std::vector<std::string>> problems(world);
  const auto body = [&](std::uint32_t rank) {
    SleepWake wake;
    auto connect = net.connect(rank);
    auto made = connect(view_of(world, rank, token), net.book(), wake);
    if (!made) return problems[rank].push_back(made.error().message);
    const auto transport = std::move(made).value();
    Node node{*transport, wake, clock, problems[rank]};
    if (node.wait([&] { return transport->connected(); }) != Progress::done) {
      return problems[rank].push_back("not connected: " + transport->error().message);
    }
    play(node);
    if (polite) node.goodbye();
  };
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) threads.emplace_back(body, rank);
  for (auto& thread : threads) thread.join();
  std::vector<std::string> all;
  for (const auto& some : problems) all.insert(all.end(), some.begin(), some.end());
  return all;
}

inline std::string joined(const std::vector<std::string>& problems) {
  std::string text;
  for (const auto& c : problems) text += c + "\n";
  return text;
}

}  // namespace rivulet::testing
