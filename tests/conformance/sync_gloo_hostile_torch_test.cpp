// A member of a view that sends messages Gloo has no buffer for. The healthy side is a separate process: this
// program again, with its role in the environment. It may lose one view, and must name the sender.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "sync/transport/gloo_transport.h"
#include "tests/conformance/raw_member.h"
#include "tests/conformance/transport_harness.h"
#include "tests/support/effort.h"
#include "tests/support/process.h"

namespace {

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;
using sync::Lane;
using namespace sync::gloo_door;

constexpr Duration patience = 120s;  // a flood is a million announcements, also under TSan

// ---- the healthy process

void say(const std::string& words) {
  std::printf("%s\n", words.c_str());
  std::fflush(stdout);
}

/// Plays view after view, each until it is lost: waits for facts, a header, and a peer that takes its
/// payload.
void play_healthy(const std::string& folder, std::uint64_t views) {
  const RealClock clock;
  sync::GlooConfig config;
  config.transport.progress_deadline = patience;
  auto connect = sync::make_gloo_connect(config, clock);
  REQUIRE(connect);
  for (std::uint64_t token = 1; token <= views; ++token) {
    SleepWake wake;
    FolderBook book(folder);
    auto made = connect.value()(view_of(2, 0, token), book, wake);
    REQUIRE(made);
    const auto transport = std::move(made).value();
    std::vector<std::string> problems;
    Node node{*transport, wake, clock, problems};
    std::vector<std::byte> facts(16), header(16), payload(100'000);
    if (node.wait([&] { return transport->connected(); }, patience) == Progress::done) {
      static_cast<void>(transport->receive_ahead(1, Lane::facts, facts));
      static_cast<void>(transport->receive(1, Lane::phase, header));
      static_cast<void>(transport->send(1, Lane::payload, payload));
      say("STANDS " + std::to_string(token) + ".");
      node.wait([&] { return transport->healthy() ? Progress::pending : Progress::failed; }, patience);
    }
    say("LOST " + std::to_string(token) + ": " + std::to_string(transport->lost_rank()) + " " +
        transport->error().message + ";");
    transport->close();
  }
  say("DONE");
}

// ---- the test

struct Healthy {
  TempDir folder;
  std::unique_ptr<Process> process;
  std::uint64_t views = 0;

  explicit Healthy(std::uint64_t views_in_all) {
    ProcessOptions options;
    options.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "-tc=Gloo healthy: *"};
    options.environment["RIVULET_TEST_HEALTHY"] = folder.path().string() + " " + std::to_string(views_in_all);
    auto started = Process::start(options);
    REQUIRE(started);
    process = std::move(started).value();
  }
  /// The error with which it lost its next view to such a member.
  std::string lose_to(const std::function<void(const RawMember&)>& send, const std::string& at_once = "") {
    ++views;
    const std::string view = std::to_string(views);
    const RawMember member(folder.path(), views, at_once);
    if (at_once.empty()) {
      REQUIRE_MESSAGE(process->wait_for_output("STANDS " + view + ".", patience), process->output());
      send(member);
    }
    const bool lost = process->wait_for_output("LOST " + view + ":", patience);
    REQUIRE_MESSAGE(process->running(), process->output() << process->errors());
    REQUIRE_MESSAGE(lost, process->output());
    std::string all;
    std::size_t at = 0;
    REQUIRE(wait_until(
        [&] {
          all = process->output();
          at = all.find("LOST " + view + ":");
          return all.find(';', at) != std::string::npos;
        },
        patience));
    return all.substr(at, all.find(';', at) - at);
  }
};

constexpr int up = 0;    ///< mesh on which rank 0 sends
constexpr int down = 1;  ///< mesh on which rank 1 sends
constexpr int words = 2;
constexpr int lane_tag(Lane lane) {
  return data_tag(static_cast<int>(lane), false);
}
std::uint64_t slot_of(Lane lane) {
  return static_cast<std::uint64_t>(lane_tag(lane));
}

}  // namespace

TEST_CASE("Gloo healthy: plays the role it is given") {
  const char* text = std::getenv("RIVULET_TEST_HEALTHY");
  if (text == nullptr) return;
  std::string folder;
  std::uint64_t views = 0;
  std::istringstream(text) >> folder >> views;
  play_healthy(folder, views);
}

TEST_CASE("Gloo: whatever a member sends, a healthy process loses the view at worst, and names the member") {
  struct Attack {
    std::string name;
    int mesh;
    std::string bytes;
    std::string why;
  };
  const int facts = lane_tag(Lane::facts);
  const std::uint64_t huge = std::uint64_t{1} << 63U;
  const std::vector<Attack> attacks{
      {"longer", down, message(facts, std::string(17, 'x')), "a message longer than expected"},
      {"much longer", down, frame({huge, Preamble::message, slot_of(Lane::facts), 0, huge, 0}),
       "a message longer"},
      {"shorter", down, message(facts, std::string(15, 'x')), "a message shorter than expected"},
      {"nothing", down, message(facts, ""), "a message shorter than expected"},
      {"two lengths", down, frame({100, Preamble::message, slot_of(Lane::facts), 0, 16, 0}),
       "a message with two different lengths"},
      {"unexpected", down, message(lane_tag(Lane::state), "12345678"), "a message without a posted receive"},
      {"a second", down, message(facts, std::string(16, 'x')) + message(facts, std::string(16, 'x')),
       "a message without a posted receive"},
      {"on the other mesh", up, message(facts, std::string(16, 'x')), "a message without a posted receive"},
      {"last words, longer", words, message(sentinel_tag, std::string(9, 'x')),
       "a message longer than expected"},
      {"no lane", down, message(3 * 1000, "12345678"), "a message on an unknown lane"},
      {"pinned", down, frame({56, Preamble::pinned, slot_of(Lane::facts), 0, 8, 0}, "12345678"),
       "a message of an unknown type"},
      {"pinned, wrapped", down, frame({56, Preamble::pinned, 0, 0, 8, huge}, "12345678"),
       "a message on an unknown lane"},
      {"unknown kind", down, frame({48, 7, slot_of(Lane::facts), 0, 0, 0}), "a message of an unknown type"},
      {"announcement with bytes", down,
       frame({56, Preamble::send_ready, slot_of(Lane::facts), 0, 8, 0}, "12345678"),
       "an announcement with a payload"},
  };
  Healthy healthy(attacks.size() + 3);
  for (const Attack& attack : attacks) {
    CAPTURE(attack.name);
    const std::string lost = healthy.lose_to([&](const RawMember& m) { m.send(attack.mesh, attack.bytes); });
    CAPTURE(lost);
    CHECK(lost.find(": 1 rank 1 (device-b)") != std::string::npos);
    CHECK(lost.find("sent an unexpected message: " + attack.why) != std::string::npos);
  }
  // The 56 bytes: a member's number, and a message before the mesh is complete.
  const std::string early = healthy.lose_to({}, message(lane_tag(Lane::state), ""));
  CHECK_MESSAGE(early.find(": 1 rank 1 (device-b)") != std::string::npos, early);
  // Gloo keeps announcements, one by one.
  for (const auto kind : {Preamble::send_ready, Preamble::receive_ready}) {
    std::string many;
    for (int i = 0; i < 4096; ++i) many += frame({48, kind, slot_of(Lane::facts), 0, 16, 0});
    const std::string flooded = healthy.lose_to([&](const RawMember& m) {
      for (std::uint64_t sent = 0; sent <= FrameCheck::announced_most && m.send(down, many); sent += 4096) {
      }
    });
    CHECK_MESSAGE(flooded.find("too many announcements without a posted operation") != std::string::npos,
                  flooded);
  }
  CHECK(healthy.process->wait_for_output("DONE", patience));
}

TEST_CASE("Gloo: a member that sends anything at all ends no healthy process") {
  const auto seed = seed_or(1);
  CAPTURE(seed);
  const auto views = static_cast<std::uint64_t>(repetitions(20, 1000));
  Healthy healthy(views);
  Rng rng = Rng::derive(seed, "hostile member");
  const auto word = [&](std::uint64_t usual) {
    const std::uint64_t kind = rng.below(8);
    return kind < 5 ? usual : kind < 7 ? rng.below(300) : rng.next();
  };
  for (std::uint64_t view = 1; view <= views; ++view) {
    const std::string lost = healthy.lose_to([&](const RawMember& m) {
      for (int k = 0; k < 400; ++k) {
        const auto lane = 1 + rng.below(sync::lanes_end - 1);
        const std::uint64_t length = rng.below(40);
        const Preamble p{word(48 + length), word(1 + rng.below(3)), word(3 * lane + rng.below(2)),
                         word(0),           word(length),           word(0)};
        if (!m.send(static_cast<int>(rng.below(meshes)), frame(p, std::string(length, 'x')))) return;
      }
    });
    CAPTURE(lost);
    CHECK(lost.find(": 1 rank 1 (device-b)") != std::string::npos);
  }
  CHECK(healthy.process->wait_for_output("DONE", patience));
}

TEST_CASE("Gloo: a view that connects is given up within a moment") {
  const RealClock clock;
  TempDir folder;
  FolderBook book(folder.path());
  SleepWake wake;
  auto connect = sync::make_gloo_connect({}, clock);
  REQUIRE(connect);
  auto made = connect.value()(view_of(2, 0), book, wake);
  REQUIRE(made);
  const SilentMember silent(folder.path(), 7);
  REQUIRE(silent.published());
  SleepWake().sleep(300ms);  // now it waits for the member's facts, without a deadline
  CHECK(made.value()->connected() == Progress::pending);
  const TimePoint begin = clock.now();
  made.value().reset();
  CHECK(clock.now() - begin < noticed_within(1s));
}
