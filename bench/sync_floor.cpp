// Measures synchronization relative to the minimum time on the link. A round of SyncSession (facts, plan,
// dense payload) over Gloo, every rank in a network namespace with a separate shaped link, in turns with
// plain TCP sockets that exchange the same number of bytes in both directions between two of them. The floor
// of a schedule with s steps that sends B bytes each way over a link is T(B) + (s - 1) alpha. Alpha is an
// exchange of 4 KiB, T the line through exchanges of 256 KiB and 4 MiB (1 MiB at 10 Mbit/s), fitted in every
// round. A single socket may lose more than a schedule over several sockets, so the floor never exceeds the
// bare link's time for B. Needs root.
//   build/release/bench_sync_floor [ROUNDS] [MBIT...]
#include <algorithm>
#include <array>
#include <barrier>
#include <bit>
#include <cstdlib>
#include <functional>
#include <thread>

#include "bench/measure.h"
#include "bench/sockets.h"
#include "core/check.h"
#include "core/clock.h"
#include "sync/policy/sync_cost.h"
#include "sync/round/session.h"
#include "sync/round/speculation.h"
#include "sync/transport/gloo_transport.h"
#include "tests/conformance/transport_harness.h"
#include "tests/support/network.h"

using namespace rivulet;
using namespace rivulet::bench;

namespace {

using testing::Network;

constexpr std::size_t kib = 1024;

/// Sends and receives simultaneously, without blocking, until all bytes are transferred.
void exchange(const Socket& socket, std::span<const std::byte> out, std::span<std::byte> in) {
  while (!out.empty() || !in.empty()) {
    const auto wanted = static_cast<short>((out.empty() ? 0 : POLLOUT) | (in.empty() ? 0 : POLLIN));
    pollfd ready{socket.fd(), wanted, 0};
    RIVULET_CHECK(::poll(&ready, 1, 60'000) == 1, "the exchange over the sockets timed out");
    if ((ready.revents & POLLOUT) != 0) {
      const ssize_t n = ::send(socket.fd(), out.data(), out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) out = out.subspan(static_cast<std::size_t>(n));
    }
    if ((ready.revents & POLLIN) != 0) {
      const ssize_t n = ::recv(socket.fd(), in.data(), in.size(), MSG_DONTWAIT);
      RIVULET_CHECK(n > 0, "recv failed");
      in = in.subspan(static_cast<std::size_t>(n));
    }
  }
}

/// A barrier before and after each timed section.
class Start {
 public:
  explicit Start(std::size_t ranks) : barrier_(static_cast<std::ptrdiff_t>(ranks)) {}
  /// Returns the seconds until the last rank has finished `work`. All ranks call it.
  template <class Work>
  double timed(const Work& work) {
    barrier_.arrive_and_wait();
    const TimePoint began = clock_.now();
    work();
    barrier_.arrive_and_wait();
    return to_seconds(clock_.now() - began);
  }

 private:
  RealClock clock_;
  std::barrier<> barrier_;
};

/// One rank's end of a view, and its sessions.
class Rank {
 public:
  Rank(const Network& network, std::uint32_t world, std::uint32_t rank, testing::FolderBook& book)
      : view_(testing::view_of(world, rank)) {
    sync::GlooConfig config;
    config.bind = network.address_of(static_cast<int>(rank));
    config.transport.progress_deadline = std::chrono::seconds(60);
    auto connect = sync::make_gloo_connect(config, clock_).value();
    transport_ = connect(view_, book, wake_).value();
    wait([&] { return transport_->connected(); });
  }

  /// A round in which each rank contributes a vector with 1 + its rank in all elements.
  void agree(sync::SyncSession& session, std::span<const float> mine) {
    sync::Facts facts;
    facts.rows = 1;
    const GradientView numbers{reinterpret_cast<std::byte*>(const_cast<float*>(mine.data())), mine.size()};
    session.begin_facts(facts, {}, numbers);
    wait([&] { return session.poll(); }, [&] { return session.wait(); });
    session.begin_payload(numbers);
    wait([&] { return session.poll(); }, [&] { return session.wait(); });
    const auto agreed = session.agreed().as<float>();
    const auto world = static_cast<float>(view_.world());
    RIVULET_CHECK(std::abs(agreed[mine.size() / 2] - (world + 1) / 2) < 1e-5, "wrong mean over the ranks");
    session.finish(true);
  }

  /// Runs the shutdown barrier before the connections close.
  void leave(sync::SyncSession& session) {
    session.begin_shutdown_barrier();
    wait([&] { return session.poll(); }, [&] { return session.wait(); });
  }

  [[nodiscard]] std::unique_ptr<sync::SyncSession> session(std::string_view collective,
                                                           std::span<float> scratch) {
    sync::SessionConfig config;
    config.policy.collective = collective;
    config.policy.contribution_bytes = scratch.size_bytes();
    config.shape.tensors = {scratch.size()};
    residual_.emplace(config.shape);
    config.row_shape = {{1}, 1};
    const GradientView agreed{reinterpret_cast<std::byte*>(scratch.data()), scratch.size()};
    return std::make_unique<sync::SyncSession>(*transport_, view_, config, catalog_, *residual_, agreed);
  }

 private:
  /// Waits as Worker does, inside the transport if possible.
  void wait(const std::function<Progress()>& poll, const std::function<bool()>& inside = nullptr) {
    for (Progress p = poll(); p != Progress::done; p = poll()) {
      RIVULET_CHECK(p == Progress::pending, "the round failed");
      if (!inside || !inside()) wake_.sleep(std::chrono::milliseconds(2));
    }
  }
  RealClock clock_;
  testing::SleepWake wake_;
  sync::ViewSpec view_;
  std::unique_ptr<sync::Transport> transport_;
  sync::SyncCatalog catalog_ = sync::builtin_sync_catalog();
  std::optional<sync::Residual> residual_;
};

/// Durations of one round, in seconds.
struct Round {
  std::array<double, 3> sockets{};  ///< exchanges of `Case::sizes`
  double gather = 0;
  double sum = 0;
};

struct Case {
  double bits_per_second = 0;
  std::uint32_t world = 2;
  std::size_t bytes = 0;  ///< of the vector
  std::array<std::size_t, 3> sizes{};
};

/// Bytes per link and direction, and number of steps.
struct Schedule {
  double bytes = 0;
  int steps = 1;
};

Schedule schedule_of(std::string_view collective, std::uint32_t world, std::size_t bytes) {
  const auto size = static_cast<double>(bytes);
  const int others = static_cast<int>(world) - 1;
  if (collective == "gather") return {others * size, 1};
  const bool halving = std::has_single_bit(world) && bytes < 1024 * kib;
  const int steps = world == 2 ? 1 : 2 * (halving ? std::bit_width(world) - 1 : others);
  return {world == 2 ? size : 2 * size * others / static_cast<double>(world), steps};
}

/// Returns the seconds that the bare link needs for the bytes.
double link_alone(const Schedule& schedule, const Case& c) {
  return 8 * schedule.bytes / c.bits_per_second;
}

/// Returns the floor in seconds, from the socket exchanges of this round.
double floor_of(const Schedule& schedule, const Case& c, const Round& round) {
  const auto [alpha, middle, large] = round.sockets;
  const double per_byte = (large - middle) / static_cast<double>(c.sizes[2] - c.sizes[1]);
  const double fitted =
      middle + per_byte * (schedule.bytes - static_cast<double>(c.sizes[1])) + (schedule.steps - 1) * alpha;
  return std::min(fitted, link_alone(schedule, c));
}

/// Connects the sockets of ranks 0 and 1; other ranks have none. Rank 0 listens and passes its port.
Socket pair_of(const Network& network, std::uint32_t rank, std::atomic<int>& port) {
  if (rank > 1) return {};
  if (rank == 0) {
    const Listener listener = listen_on(network.address_of(0));
    port = listener.port;
    return accept_from(listener);
  }
  while (port == 0) std::this_thread::yield();
  return dial(network.address_of(0), static_cast<std::uint16_t>(port.load()));
}

/// Objects shared by the ranks of one case.
struct Shared {
  const Network& network;
  const Case& what;
  Start start{what.world};
  std::atomic<int> port{0};
  testing::TempDir gather_folder;
  testing::TempDir sum_folder;
};

/// Rounds before speculation starts; from then on contributions leave with the facts.
constexpr int warm_up = static_cast<int>(sync::Speculation::rounds_before) + 1;

/// Runs all rounds of one rank.
std::vector<Round> play(Shared& shared, std::uint32_t rank, int rounds) {
  const Case& c = shared.what;
  enter_namespace(shared.network.namespace_of(static_cast<int>(rank)));
  const Socket socket = pair_of(shared.network, rank, shared.port);
  testing::FolderBook gather_book(shared.gather_folder.path());
  testing::FolderBook sum_book(shared.sum_folder.path());
  Rank gather(shared.network, c.world, rank, gather_book);
  Rank sum(shared.network, c.world, rank, sum_book);
  const std::vector<float> mine(c.bytes / sizeof(float), 1 + static_cast<float>(rank));
  std::vector<float> scratch(mine.size());
  const auto gathering = gather.session("gather", scratch);
  const auto summing = sum.session("sum", scratch);
  const std::vector<std::byte> out(c.sizes[2]);
  std::vector<std::byte> in(c.sizes[2]);
  std::vector<Round> all(static_cast<std::size_t>(rounds + warm_up));
  for (Round& round : all) {
    for (std::size_t i = 0; i < c.sizes.size(); ++i)
      round.sockets[i] = shared.start.timed([&] {
        if (rank <= 1) exchange(socket, std::span(out).first(c.sizes[i]), std::span(in).first(c.sizes[i]));
      });
    round.gather = shared.start.timed([&] { gather.agree(*gathering, mine); });
    round.sum = shared.start.timed([&] { sum.agree(*summing, mine); });
  }
  gather.leave(*gathering);
  sum.leave(*summing);
  all.erase(all.begin(), all.begin() + warm_up);
  return all;
}

std::vector<Round> rounds_of(const Network& network, const Case& c, int rounds) {
  Shared shared{network, c};
  std::vector<Round> of_first;
  std::vector<std::thread> threads;
  threads.reserve(c.world);
  for (std::uint32_t rank = 0; rank < c.world; ++rank)
    threads.emplace_back([&, rank] {
      auto played = play(shared, rank, rounds);
      if (rank == 0) of_first = std::move(played);
    });
  for (auto& thread : threads) thread.join();
  return of_first;
}

void report(const Case& c, std::string_view collective, const std::vector<Round>& rounds) {
  const Schedule schedule = schedule_of(collective, c.world, c.bytes);
  std::vector<double> ours;
  std::vector<double> floors;
  for (const Round& round : rounds) {
    ours.push_back(1e3 * (collective == "gather" ? round.gather : round.sum));
    floors.push_back(1e3 * floor_of(schedule, c, round));
  }
  const auto bytes = static_cast<double>(c.bytes);
  const bool chosen = sync::policy::cheapest_collective(c.world, "dense", bytes) == collective;
  fmt::print(
      "{:3.0f} Mbit/s, {} ranks, {:5} KiB, {:6}{}: {:7.1f} ms, floor {:7.1f} ms, link alone {:7.1f} ms, {}\n",
      c.bits_per_second / 1e6, c.world, c.bytes / kib, collective, chosen ? " (auto)" : "       ",
      percentile(ours, 0.5), percentile(floors, 0.5), 1e3 * link_alone(schedule, c),
      spread(ratios(ours, floors), "x"));
  std::fflush(stdout);
}

void measure(double bits_per_second, int rounds) {
  const bool slow = bits_per_second < 50e6;
  for (const std::uint32_t world : {2U, 3U, 4U, 8U}) {
    auto made = Network::create({.nodes = static_cast<int>(world), .bits_per_second = bits_per_second});
    if (!made) fmt::print(stderr, "{}\n", made.error().message);
    for (const std::size_t size : {256 * kib, 1024 * kib, 4096 * kib}) {
      if (slow && size > (world > 4 ? 256 : 1024) * kib) continue;  // half a minute per round
      const Case c{bits_per_second, world, size, {4 * kib, 256 * kib, (slow ? 1024 : 4096) * kib}};
      const auto all = rounds_of(*made.value(), c, rounds);
      for (const std::string_view collective : {"gather", "sum"}) report(c, collective, all);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5;
  std::vector<double> rates{10, 100};
  if (argc > 2) rates.clear();
  for (int i = 2; i < argc; ++i) rates.push_back(std::atof(argv[i]));
  for (const double rate : rates) measure(rate * 1e6, rounds);
  return 0;
}
