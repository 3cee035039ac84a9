// Failures of processes in a group over Gloo. Each peer is a separate process: this program again, with its
// role in the environment.
#include <dirent.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <set>
#include <sstream>

#include "sync/collective/aggregation.h"
#include "sync/compressor/compressor.h"
#include "sync/transport/gloo_transport.h"
#include "tests/conformance/transport_harness.h"
#include "tests/support/dense_exchange.h"
#include "tests/support/network.h"
#include "tests/support/process.h"

namespace {

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;
using sync::Lane;
using sync::Ticket;

constexpr int deadline_s = 1;
constexpr Duration deadline = std::chrono::seconds(deadline_s);
/// A killed process closes its sockets only after its memory is freed, and a sanitizer's shadow memory is
/// large.
const Duration slack = std::string(RIVULET_SANITIZE).empty() ? 0s : 10s;

int entries_of(const char* folder) {
  int n = 0;
  DIR* dir = opendir(folder);
  while (readdir(dir) != nullptr) ++n;
  closedir(dir);
  return n;
}
int open_files() {
  return entries_of("/proc/self/fd");
}
int threads() {
  return entries_of("/proc/self/task");
}

// ---- in a peer process
// --------------------------------------------------------------------------------------------

struct Role {
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::string folder, bind, what;
  std::size_t count = 0;        ///< elements of a contribution
  int connect_deadline_s = 60;  ///< long: slow process starts are not failures
  int progress_deadline_s = deadline_s;
};

Role role_from_environment() {
  Role role;
  if (const char* text = std::getenv("RIVULET_TEST_PEER")) {
    std::istringstream(text) >> role.rank >> role.world >> role.folder >> role.bind >> role.what >>
        role.count >> role.connect_deadline_s >> role.progress_deadline_s;
  }
  return role;
}

Progress health(sync::Transport& transport) {
  return transport.healthy() ? Progress::pending : Progress::failed;
}

/// Gathers in a loop until something fails. True: the contribution is unchanged.
bool gather_for_ever(Node& node, std::size_t count) {
  const sync::AggregationEntry* entry = nullptr;
  for (const auto* e : sync::builtin_aggregations()) entry = e->name == "gather" ? e : entry;
  auto aggregation = entry->make();
  std::vector<float> mine(count, 1.5F), agreed(count);
  const std::vector<double> weights(node.world(), 1.0 / node.world());
  Progress p = Progress::done;
  DenseExchange<float> exchange(mine, agreed, weights);
  for (std::uint64_t round = 0; p == Progress::done; ++round) {
    exchange.round = round;
    if (!aggregation->begin(node.transport, exchange)) break;
    p = node.wait([&] { return aggregation->poll(); }, 60s);
  }
  node.transport.close();
  for (const float x : mine) {
    if (x != 1.5F) return false;
  }
  return true;
}

/// Prints READY, then, once the transport has failed: FAILED <clock ns> <code> <lost rank> <untouched> <files
/// and threads left over> <message>
void play_peer(const Role& role) {
  const RealClock clock;
  SleepWake wake;
  FolderBook book(role.folder);
  sync::GlooConfig config;
  config.bind = role.bind;
  config.transport.progress_deadline = std::chrono::seconds(role.progress_deadline_s);
  config.connect_deadline = std::chrono::seconds(role.connect_deadline_s);
  auto connect = sync::make_gloo_connect(config, clock);
  REQUIRE(connect);
  std::thread([] {}).join();  // a sanitizer's own thread, if any, starts with our first
  const int files_before = open_files();
  const int threads_before = threads();
  auto made = connect.value()(view_of(role.world, role.rank), book, wake);
  REQUIRE(made);
  auto transport = std::move(made).value();
  std::vector<std::string> problems;
  Node node{*transport, wake, clock, problems};
  const bool connected =
      node.wait([&] { return transport->connected(); }, config.connect_deadline + 10s) == Progress::done;
  if (connected) {
    std::printf("READY\n");
    std::fflush(stdout);
  }
  std::vector<std::byte> facts(256 * role.world);
  for (std::uint32_t r = 0; connected && r < role.world; ++r) {
    if (r != role.rank) transport->receive_ahead(r, Lane::facts, std::span(facts).subspan(256 * r, 256));
  }
  bool untouched = true;
  if (connected && role.what == "gather") untouched = gather_for_ever(node, role.count);
  node.wait([&] { return health(*transport); }, 30s);
  const auto now = clock.now().time_since_epoch().count();
  transport->close();
  // The kernel may list a joined thread a little longer.
  const auto left_now = [&] { return open_files() - files_before + threads() - threads_before; };
  node.wait([&] { return left_now() <= 0 ? Progress::done : Progress::pending; }, 2s);
  const int left = left_now();
  std::printf("FAILED %lld %s %d %d %d %s\n", static_cast<long long>(now),
              std::string(name_of(transport->error().code)).c_str(), transport->lost_rank(),
              untouched ? 1 : 0, left, transport->error().message.c_str());
  std::fflush(stdout);
}

// ---- in the test
// --------------------------------------------------------------------------------------------------

/// For messages, which are also formatted without an error.
template <class T>
std::string trouble_of(const Result<T>& result) {
  return result ? std::string() : result.error().message;
}

struct Verdict {
  bool there = false;
  Duration at{};
  std::string code;
  int lost = -2;
  int untouched = 0;
  int left = 0;
  std::string message;
};

Verdict verdict_of(const std::string& output) {
  Verdict v;
  const auto begin = output.find("FAILED ");
  if (begin == std::string::npos) return v;
  long long ns = 0;
  std::istringstream line(output.substr(begin + 7));
  line >> ns >> v.code >> v.lost >> v.untouched >> v.left;
  std::getline(line, v.message);
  v.there = true;
  v.at = Duration(ns);
  return v;
}

struct Peers {
  TempDir folder;
  std::vector<std::unique_ptr<Process>> processes;
  int connect_deadline_s = Role().connect_deadline_s;
  int progress_deadline_s = Role().progress_deadline_s;

  void start(std::uint32_t world, const std::string& what, std::size_t count, Network* network = nullptr) {
    for (std::uint32_t r = 0; r < world; ++r) start_one(r, world, what, count, network);
    for (auto& p : processes) REQUIRE_MESSAGE(p->wait_for_output("READY", 90s), p->output() << p->errors());
  }
  void start_one(std::uint32_t r, std::uint32_t world, const std::string& what, std::size_t count,
                 Network* network = nullptr) {
    ProcessOptions options;
    options.command = {"/proc/self/exe", "-tc=Gloo peer: *"};
    options.command[0] = std::string(256, '\0');
    const auto length = readlink("/proc/self/exe", options.command[0].data(), 256);
    options.command[0].resize(static_cast<std::size_t>(length));
    const std::string bind = network ? network->address_of(static_cast<int>(r)) : "127.0.0.1";
    if (network) options.network_namespace = network->namespace_of(static_cast<int>(r));
    options.environment["RIVULET_TEST_PEER"] =
        std::to_string(r) + " " + std::to_string(world) + " " + folder.path().string() + " " + bind + " " +
        what + " " + std::to_string(count) + " " + std::to_string(connect_deadline_s) + " " +
        std::to_string(progress_deadline_s);
    auto process = Process::start(options);
    REQUIRE_MESSAGE(process, trouble_of(process));
    processes.push_back(std::move(process).value());
  }
  /// Every rank except `victim` reports the failure within deadline + 1 s, has released everything, and names
  /// the victim. If the victim is silent, it may name another rank that names the victim.
  void check_verdicts(std::uint32_t victim, Duration event) {
    std::set<int> witnesses{static_cast<int>(victim)};
    for (std::uint32_t r = 0; r < processes.size(); ++r) {
      if (r == victim) continue;
      CHECK(processes[r]->wait_for_output("FAILED", 20s));
      const Verdict v = verdict_of(processes[r]->output());
      if (v.code == "timed_out" && v.lost == static_cast<int>(victim)) witnesses.insert(static_cast<int>(r));
    }
    for (std::uint32_t r = 0; r < processes.size(); ++r) {
      if (r == victim) continue;
      CHECK(processes[r]->wait_for_output("FAILED", 20s));
      processes[r]->wait(5s);
      const Verdict v = verdict_of(processes[r]->output());
      INFO("rank " << r << ": " << v.code << ": " << v.message << ", after " << to_seconds(v.at - event)
                   << " s");
      CHECK(v.there);
      CHECK(v.at - event < deadline + 1s + slack);
      CHECK(witnesses.contains(v.lost));
      CHECK(v.message.find("rank " + std::to_string(v.lost) + " (device-") != std::string::npos);
      CHECK(v.untouched == 1);
      CHECK(v.left <= 0);  // a thread of the start may have ended since
      CHECK(v.message.find("/pytorch/") == std::string::npos);
    }
  }
  Duration hit(std::uint32_t victim, int signal) {
    const Duration now = RealClock().now().time_since_epoch();
    processes[victim]->send_signal(signal);
    return now;
  }
};

void let_pass(Duration d) {
  SleepWake pause;
  pause.sleep(d);
}

TEST_CASE("Gloo peer: plays the role it is given, and without one is a group of one") {
  const Role role = role_from_environment();
  if (role.world > 1) return play_peer(role);
  const RealClock clock;
  TempDir folder;
  FolderBook book(folder.path());
  SleepWake wake;
  auto connect = sync::make_gloo_connect({}, clock);
  REQUIRE(connect);
  auto transport = connect.value()(view_of(1, 0), book, wake);
  REQUIRE(transport);
  CHECK(transport.value()->connected() == Progress::done);
  CHECK(transport.value()->healthy());
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("Gloo: a process killed while all are idle is known within 300 ms") {
  for (const std::uint32_t world : {2U, 4U}) {
    Peers peers;
    peers.start(world, "idle", 0);
    let_pass(200ms);
    const Duration event = peers.hit(world - 1, SIGKILL);
    peers.check_verdicts(world - 1, event);
    for (std::uint32_t r = 0; r + 1 < world; ++r)
      CHECK(verdict_of(peers.processes[r]->output()).at - event < 300ms + slack);
  }
}

TEST_CASE("Gloo: a process killed in the middle of payloads") {
  Peers peers;
  peers.start(3, "gather", 2'000'000);
  let_pass(500ms);
  peers.check_verdicts(1, peers.hit(1, SIGKILL));
}

TEST_CASE("Gloo: a process killed in the middle of a payload on a link of 40 Mbit/s") {
  for (const std::uint32_t world : {2U, 3U}) {
    auto network = Network::create({.nodes = static_cast<int>(world), .bits_per_second = 40e6});
    REQUIRE_MESSAGE(network, trouble_of(network));
    Peers peers;
    peers.start(world, "gather", 2'500'000, network.value().get());
    let_pass(1200ms);
    peers.check_verdicts(world - 1, peers.hit(world - 1, SIGKILL));
  }
}

TEST_CASE("Gloo: a slow link of 20 Mbit/s is not declared dead, however long a payload takes") {
  auto network = Network::create({.nodes = 2, .bits_per_second = 20e6});
  REQUIRE_MESSAGE(network, trouble_of(network));
  Peers peers;
  peers.progress_deadline_s = 4;  // long enough for a process that waits for a processor
  peers.start(2, "gather", 5'000'000, network.value().get());  // 8 s per payload
  let_pass(18s);
  for (auto& p : peers.processes) {
    CHECK(p->running());
    CHECK_MESSAGE(p->output().find("FAILED") == std::string::npos, p->output());
  }
}

TEST_CASE("Gloo: a cable pulled out in the middle of a payload is noticed by the deadline") {
  auto network = Network::create({.nodes = 2, .bits_per_second = 40e6});
  REQUIRE_MESSAGE(network, trouble_of(network));
  Peers peers;
  peers.start(2, "gather", 2'500'000, network.value().get());
  let_pass(700ms);
  const Duration event = RealClock().now().time_since_epoch();
  REQUIRE(network.value()->set_connected(1, false));
  peers.check_verdicts(1, event);
  CHECK(verdict_of(peers.processes[0]->output()).code == "timed_out");
}

TEST_CASE("Gloo: a stopped process is noticed by the deadline, and learns of it when it goes on") {
  for (const std::size_t count : {std::size_t{1'000}, std::size_t{2'000'000}}) {
    Peers peers;
    peers.start(3, "gather", count);
    let_pass(500ms);
    const Duration event = peers.hit(2, SIGSTOP);
    peers.check_verdicts(2, event);
    CHECK(verdict_of(peers.processes[0]->output()).code == "timed_out");
    peers.processes[2]->send_signal(SIGCONT);
    CHECK(peers.processes[2]->wait_for_output("FAILED", 5s));
  }
}

TEST_CASE("Gloo: a device that does not come is named when the connect deadline has passed") {
  Peers peers;
  peers.connect_deadline_s = 10;  // time for both to start
  peers.start_one(0, 3, "idle", 0);
  peers.start_one(1, 3, "idle", 0);
  for (auto& p : peers.processes) {
    CHECK(p->wait_for_output("FAILED", 60s));
    const Verdict v = verdict_of(p->output());
    CHECK(v.code == "timed_out");
    CHECK(v.lost == 2);
    CHECK(v.message.find("rank 2 (device-c)") != std::string::npos);
    CHECK(v.message.find("rank 1") == std::string::npos);
    CHECK(v.message.find("no address within 10.7 s") != std::string::npos);  // 10 s, and 0.25 s per member
    CHECK(v.left <= 0);  // a thread of the start may have ended since
  }
}

TEST_CASE("Gloo: a hundred views leave no descriptor and no thread behind") {
  struct Net {
    RealClock clock;
    TempDir folder;
    FolderBook book_{folder.path()};
    sync::Connect connect(std::uint32_t) {
      auto made = sync::make_gloo_connect({}, clock);
      REQUIRE(made);
      return std::move(made).value();
    }
    sync::AddressBook& book() { return book_; }
  } net;
  int files = 0, tasks = 0;
  for (std::uint64_t token = 1; token <= 105; ++token) {
    const auto problems = play_group(
        net, 2,
        [](Node& node) {
          std::array<std::byte, 64> in{}, ahead{}, out{};
          static_cast<void>(node.transport.receive_ahead(1 - node.rank(), Lane::facts, ahead));
          const Ticket got = node.transport.receive(1 - node.rank(), Lane::phase, in);
          node.finish(node.transport.send(1 - node.rank(), Lane::phase, out), "send");
          node.finish(got, "receive");
        },
        true, token);
    REQUIRE_MESSAGE(problems.empty(), joined(problems));
    if (token == 5) {
      files = open_files();
      tasks = threads();
    }
  }
  CHECK(open_files() == files);
  CHECK(threads() == tasks);
}

TEST_CASE("Gloo: one receive may come in chunks that are each sent alone, 200 ms apart") {
  struct Net {
    RealClock clock;
    TempDir folder;
    FolderBook book_{folder.path()};
    sync::Connect connect(std::uint32_t) {
      sync::GlooConfig config;
      config.transport = {.progress_deadline = deadline, .chunk_bytes = 1000};
      auto made = sync::make_gloo_connect(config, clock);
      REQUIRE(made);
      return std::move(made).value();
    }
    sync::AddressBook& book() { return book_; }
  } net;
  const auto problems = play_group(net, 2, [](Node& node) {
    auto bytes = pattern(10'000, 3);
    if (node.rank() == 0) {
      std::vector<std::byte> in(bytes.size());
      node.finish(node.transport.receive(1, Lane::payload, in), "ten chunks in 2 s");
      node.expect(in == bytes, "wrong bytes");
      return;
    }
    for (std::size_t i = 0; i < 10; ++i) {
      let_pass(200ms);
      node.finish(node.transport.send(0, Lane::payload, std::span(bytes).subspan(i * 1000, 1000)), "chunk");
    }
  });
  CHECK_MESSAGE(problems.empty(), joined(problems));
}

}  // namespace
