// Views over Gloo with connections from non-members, and views on a persistent port. Each rank is a separate
// process: this program again, with its role in the environment.
#include <doctest/doctest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "sync/transport/gloo_transport.h"
#include "tests/conformance/transport_harness.h"
#include "tests/support/process.h"
#include "tests/support/raw_http.h"
#include "tests/support/strangers.h"
#include "tests/support/wait.h"

namespace {

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;
using sync::Lane;

constexpr auto patience = 60s;
constexpr rlim_t few_files = 160;

// ---- in a rank's process

struct Role {
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::string folder;
  int port = 0;
  std::uint64_t views = 0;
};

Role role_from_environment() {
  Role role;
  if (const char* text = std::getenv("RIVULET_TEST_RANK"))
    std::istringstream(text) >> role.rank >> role.world >> role.folder >> role.port >> role.views;
  return role;
}

void say(const std::string& words) {
  std::printf("%s\n", words.c_str());
  std::fflush(stdout);
}

/// Sends eight bytes to every rank and receives theirs.
bool exchange(Node& node) {
  std::vector<std::byte> mine(8), theirs(8 * node.world());
  std::vector<sync::Ticket> tickets;
  for (std::uint32_t r = 0; r < node.world(); ++r) {
    if (r == node.rank()) continue;
    tickets.push_back(node.transport.receive(r, Lane::phase, std::span(theirs).subspan(8 * r, 8)));
    tickets.push_back(node.transport.send(r, Lane::phase, mine));
  }
  bool good = true;
  for (const auto ticket : tickets) good = node.finish(ticket, "exchange") && good;
  return good;
}

/// Runs rounds on request: the file `rounds` in the folder has their number.
void serve_rounds(Node& node, const std::string& folder) {
  for (int done = 0; std::filesystem::exists(folder + "/view");) {
    int wanted = 0;
    std::ifstream(folder + "/rounds") >> wanted;
    if (done >= wanted) {
      node.wake.sleep(20ms);
      node.expect(node.transport.healthy(), "lost: " + node.transport.error().message);
      continue;
    }
    if (!exchange(node)) break;
    say("ROUND " + std::to_string(++done) + ".");
  }
}

void play_rank(const Role& role) {
  const RealClock clock;
  sync::GlooConfig config;
  config.port = role.port;
  config.connect_deadline = patience;
  config.transport.progress_deadline = patience;
  auto connect = sync::make_gloo_connect(config, clock);
  if (!connect) return say("REFUSED " + connect.error().message);
  for (std::uint64_t view = 1; view <= role.views; ++view) {
    SleepWake wake;
    FolderBook book(role.folder);
    auto made = connect.value()(view_of(role.world, role.rank, view), book, wake);
    REQUIRE(made);
    const auto transport = std::move(made).value();
    std::vector<std::string> problems;
    Node node{*transport, wake, clock, problems};
    if (node.wait([&] { return transport->connected(); }, patience) != Progress::done)
      return say("FAILED " + transport->error().message);
    say("VIEW " + std::to_string(view) + ".");
    if (role.views == 1)
      serve_rounds(node, role.folder);
    else
      exchange(node);
    node.goodbye();
    if (!problems.empty()) return say("FAILED " + joined(problems));
  }
  say("DONE");
}

// ---- in the test

struct Ranks {
  TempDir folder;
  std::vector<std::unique_ptr<Process>> processes;

  Ranks() { std::ofstream(folder.path() / "view") << 1; }
  Process& start(std::uint32_t rank, int port = 0, std::uint64_t views = 1) {
    ProcessOptions options;
    options.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "-tc=Gloo rank: *"};
    options.environment["RIVULET_TEST_RANK"] = std::to_string(rank) + " 2 " + folder.path().string() + " " +
                                               std::to_string(port) + " " + std::to_string(views);
    auto process = Process::start(options);
    REQUIRE(process);
    processes.push_back(std::move(process).value());
    return *processes.back();
  }
  /// Every rank runs rounds up to this one.
  void make_rounds(int up_to) {
    std::ofstream(folder.path() / "rounds.new") << up_to;
    std::filesystem::rename(folder.path() / "rounds.new", folder.path() / "rounds");
    for (const auto& p : processes)
      REQUIRE_MESSAGE(p->wait_for_output("ROUND " + std::to_string(up_to) + ".", patience), p->output());
  }
  std::string story() const {
    std::string all;
    for (const auto& p : processes) all += p->output() + p->errors();
    return all;
  }
};

void leave_few_files(const Process& process) {
  const rlimit few{few_files, few_files};
  REQUIRE(::prlimit(process.pid(), RLIMIT_NOFILE, &few, nullptr) == 0);
}

/// The persistent one: a device first tries whether it can listen at all.
int port_of(const Process& process) {
  std::set<int> ports;
  const auto stays = [&] {
    const std::set<int> before = std::exchange(ports, listening_ports(process.pid()));
    return !ports.empty() && ports == before;
  };
  REQUIRE(wait_until(stays, patience));
  return *ports.begin();
}

/// N non-members connect to a port: silent ones, some with numbers that Gloo would count, some with text. All
/// disconnect at the end. Returns the number of connections.
int storm(int port, int strangers) {
  int let_in = 0;
  for (int left = strangers; left > 0; left -= 200) {
    std::vector<int> fds;
    for (int i = 0; i < std::min(left, 200); ++i) fds.push_back(start_connecting(port));
    for (std::size_t i = 0; i < fds.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i % 7);
      pollfd p{fds[i], POLLOUT, 0};
      int error = 0;
      socklen_t size = sizeof error;
      if (::poll(&p, 1, 0) != 1) continue;
      ::getsockopt(fds[i], SOL_SOCKET, SO_ERROR, &error, &size);
      if (error == 0 && (p.revents & POLLHUP) == 0) ++let_in;
      if (i % 3 == 1) ::send(fds[i], &number, sizeof number, MSG_NOSIGNAL);
      if (i % 3 == 2) ::send(fds[i], "GET / HTTP/1.1\r\n\r\n", 18, MSG_NOSIGNAL);
    }
    for (const int fd : fds) ::close(fd);
  }
  return let_in;
}

int files_of(const Process& process) {
  return process.stats().value().open_files;
}

/// True if it uses less than half of a core while idle.
bool is_calm(const Process& process) {
  const RealClock clock;
  const auto cpu = [&] { return process.stats().value().cpu_seconds; };
  const auto share = [&] {
    const double before = cpu();
    const TimePoint begin = clock.now();
    SleepWake().sleep(400ms);
    return (cpu() - before) / to_seconds(clock.now() - begin);
  };
  return share() < 0.5 || share() < 0.5;
}

}  // namespace

TEST_CASE("Gloo rank: plays the role it is given") {
  const Role role = role_from_environment();
  if (role.world > 1) play_rank(role);
}

TEST_CASE("Gloo: hundreds of strangers before, while and after a view forms take nothing and end nothing") {
  Ranks ranks;
  Process& first = ranks.start(0);
  leave_few_files(first);
  const int port = port_of(first);
  const int files = files_of(first);
  CHECK(storm(port, 1000) > 0);
  REQUIRE(first.running());
  // Silent connections, and a member's three meshes; all others are closed.
  CHECK(files_of(first) <= files + 32 + 3 * 2);
  CHECK(is_calm(first));

  Process& second = ranks.start(1);
  leave_few_files(second);
  bool both = false;
  REQUIRE(wait_until(
      [&] {
        storm(port, 100);
        both = first.wait_for_output("VIEW 1.", 0s) && second.wait_for_output("VIEW 1.", 0s);
        return both || !first.running() || !second.running();
      },
      patience));
  INFO(ranks.story());
  REQUIRE(both);
  ranks.make_rounds(1);
  const int standing = files_of(first);
  CHECK(standing < static_cast<int>(few_files));
  const int other_port = port_of(second);
  for (int k = 2; k < 6; ++k) {
    CHECK(storm(port, 400) == 0);
    CHECK(storm(other_port, 400) == 0);
    ranks.make_rounds(k);
  }
  CHECK(files_of(first) == standing);
  for (auto& p : ranks.processes) CHECK(is_calm(*p));
  std::filesystem::remove(ranks.folder.path() / "view");
  for (auto& p : ranks.processes) CHECK_MESSAGE(p->wait_for_output("DONE", patience), p->output());
}

TEST_CASE("Gloo: two processes on fixed ports form view after view, and who finds a port taken names it") {
  Ranks ranks;
  const int ports[] = {free_port(), free_port()};
  REQUIRE(ports[0] != ports[1]);
  for (const std::uint32_t rank : {0U, 1U}) ranks.start(rank, ports[rank], 20);
  const bool seen = wait_until(
      [&] { return listening_ports(ranks.processes[0]->pid()) == std::set<int>{ports[0]}; }, patience);
  CHECK(seen);
  for (auto& p : ranks.processes) CHECK_MESSAGE(p->wait_for_output("DONE", patience), ranks.story());

  const RealClock clock;
  sync::GlooConfig config;
  config.port = ports[0];
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(config.port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0);
  REQUIRE(::listen(fd, 1) == 0);
  const auto taken = sync::make_gloo_connect(config, clock);
  REQUIRE_FALSE(taken);
  CHECK(taken.error().code == ErrorCode::unavailable);
  CHECK(taken.error().message.starts_with("sync.port = " + std::to_string(config.port) + ": "));
  ::close(fd);
  CHECK(sync::make_gloo_connect(config, clock));
}
