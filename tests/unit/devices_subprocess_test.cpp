// Functions run in a subprocess, and error messages of failing scripts.
#include "devices/subprocess.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "core/clock.h"
#include "devices/script_words.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

/// Never returns.
Result<std::string> forever() {
  for (;;) pause();
}

}  // namespace

TEST_CASE("Subprocess: what a body says comes back, an error with its code") {
  std::string large(300'000, 'x');
  large[7] = '\0';
  CHECK(run_in_subprocess([&] { return Result<std::string>(large); }, {}).value() == large);
  CHECK(run_in_subprocess([] { return Result<std::string>(""); }, {}).value().empty());
  const auto error =
      run_in_subprocess([] { return Result<std::string>(Error{ErrorCode::numeric, "odd"}); }, {});
  REQUIRE(!error);
  CHECK(error.error().code == ErrorCode::numeric);
  CHECK(error.error().message == "odd");
}

TEST_CASE("Subprocess: what ends its process is an error that says how") {
  const auto killed = run_in_subprocess(
      []() -> Result<std::string> {
        raise(SIGKILL);
        return std::string();
      },
      {});
  REQUIRE(!killed);
  CHECK(contains(killed.error().message, "Killed"));
  CHECK(killed.error().code == ErrorCode::unavailable);  // the machine may have been short of memory
  const auto gone = run_in_subprocess([]() -> Result<std::string> { _exit(0); }, {});
  REQUIRE(!gone);
  CHECK(gone.error().code == ErrorCode::protocol);
}

TEST_CASE("Subprocess: a terminal's and a service manager's signals are for the caller alone") {
  const auto said = run_in_subprocess(
      []() -> Result<std::string> {
        for (const int number : {SIGINT, SIGTERM, SIGHUP}) raise(number);
        return std::string("still here");
      },
      {});
  REQUIRE(said);
  CHECK(said.value() == "still here");
}

TEST_CASE(
    "Apart: who does not answer is ended, at the deadline or when asked to stop, and leaves no process") {
  const auto late = run_in_subprocess(forever, {.deadline = std::chrono::milliseconds(50)});
  REQUIRE(!late);
  CHECK(late.error().code == ErrorCode::timed_out);
  const std::atomic<int> stop{1};
  const auto stopped = run_in_subprocess(forever, {.deadline = std::chrono::hours(1), .stop = &stop});
  REQUIRE(!stopped);
  CHECK(stopped.error().code == ErrorCode::cancelled);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("Script's words: the reason comes first, then the last place, in one short line") {
  const std::string said =
      "The following operation failed in the TorchScript interpreter.\n"
      "Traceback of TorchScript, serialized code (most recent call last):\n"
      "  File \"code/__torch__/Net.py\", line 9, in forward\n    x = f(x)\n        ~ <--- HERE\n"
      "Traceback of TorchScript, original code (most recent call last):\n"
      "  File \"net.py\", line 3, in forward\n    x = f(x)\n        ~ <--- HERE\n"
      "RuntimeError: shapes \x1b[2J cannot\n  be multiplied\n";
  CHECK(readable(said) ==
        "RuntimeError: shapes \\u001b[2J cannot be multiplied (File \"net.py\", line 3, in forward)");
  CHECK(readable("  plain\nwords ") == "plain words");
  CHECK(readable("").empty());
  CHECK(readable(said + std::string(9000, 'x')).size() <= 500);
  CHECK(contains(readable(said + std::string(9000, 'x')), "line 3, in forward)"));
  CHECK(readable("Traceback of TorchScript <--- HERE") == "Traceback of TorchScript <--- HERE");
}
