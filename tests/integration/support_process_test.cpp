#include <doctest/doctest.h>
#include <signal.h>

#include "core/clock.h"
#include "tests/support/process.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

std::unique_ptr<Process> start_shell(const std::string& script) {
  Result<std::unique_ptr<Process>> started = Process::start({.command = {"sh", "-c", script}});
  REQUIRE_MESSAGE(started, started.error().message);
  return std::move(started.value());
}

}  // namespace

TEST_CASE("Support: a child gets arguments, environment, input and a folder, and its output comes back") {
  const TempDir folder;
  const RunOutput result =
      run({.command = {"sh", "-c", "cat; echo \"$1 $COLOUR$HOME\"; pwd; echo bad >&2; exit 7", "-", "word"},
           .environment = {{"COLOUR", "blue"}, {"HOME", ""}},
           .directory = folder.path(),
           .input = "text\n"},
          10s);
  CHECK(result.output == "text\nword blue\n" + folder.path().string() + "\n");
  CHECK(result.errors == "bad\n");
  CHECK(result.status.code == 7);
  CHECK_FALSE(result.timed_out);
}

TEST_CASE("Support: a program that is not there and one that does not end are told apart") {
  CHECK(run({.command = {"no-such-program"}}, 1s).status.code == 127);
  CHECK(run({.command = {"/no/such/program"}}, 1s).errors.find("/no/such/program") != std::string::npos);
  const RunOutput endless = run({.command = {"sleep", "60"}}, 50ms);
  CHECK(endless.timed_out);
}

TEST_CASE("Support: signals reach a child, and its end is told with the signal") {
  const auto child = start_shell("trap 'echo caught; exit 3' TERM; echo ready; while :; do sleep 0.02; done");
  REQUIRE(child->wait_for_output("ready", 10s));
  child->send_signal(SIGSTOP);
  CHECK(wait_until([&] { return child->stats()->state == 'T'; }, 5s));
  child->send_signal(SIGCONT);
  child->send_signal(SIGTERM);
  const auto status = child->wait(10s);
  REQUIRE(status);
  CHECK(status->code == 3);
  CHECK(child->output() == "ready\ncaught\n");

  const auto killed = start_shell("sleep 60");
  killed->send_signal(SIGKILL);
  REQUIRE(killed->wait(10s));
  CHECK(killed->wait(10s)->signal == SIGKILL);
}

TEST_CASE("Support: a child's children end with the object that started it") {
  pid_t grandchild = 0;
  {
    const auto child = start_shell("sleep 60 & echo started; wait");
    REQUIRE(child->wait_for_output("started", 10s));
    REQUIRE(wait_until([&] { return children_of(child->pid()).size() == 1; }, 5s));
    grandchild = children_of(child->pid()).front();
    const auto stats = read_process_stats(grandchild);
    REQUIRE(stats);
    CHECK(stats->threads == 1);
    CHECK(stats->rss_bytes > 0);
    CHECK(stats->open_files >= 3);
  }
  // Its parent is another process, so it may remain as a zombie (Z) for a while.
  CHECK(wait_until(
      [&] {
        const auto stats = read_process_stats(grandchild);
        return !stats || stats->state == 'Z';
      },
      5s));
}

TEST_CASE("Support: a busy child's processor time is counted") {
  const auto child = start_shell("while :; do :; done");
  CHECK(wait_until([&] { return child->stats()->cpu_seconds > 0.05; }, 10s));
}
