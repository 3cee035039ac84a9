#include <doctest/doctest.h>
#include <unistd.h>

#include <sstream>

#include "runtime/cli/run_line.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::runtime::cli;
using namespace std::chrono_literals;
using rivulet::testing::contains;

namespace {

/// Output of a training device in one minute.
std::string minute_of(bool interactive, int width) {
  std::ostringstream out;
  NodeStatus status;
  status.state = NodeState::training;
  status.world = 1;
  status.set_health({.judged = true, .findings = {}});
  Config config;
  config.device.id = "m1";
  {
    RunLine line({.out = out, .err = out, .interactive = interactive, .width = width}, out, STDOUT_FILENO,
                 config);
    for (TimePoint now{1h}; now < TimePoint{1h} + 1min; now += 20ms) {
      ++status.rows_trained;
      line.look(status, now);
    }
  }
  return out.str();
}

std::ptrdiff_t count(const std::string& text, char c) {
  return std::count(text.begin(), text.end(), c);
}

}  // namespace

TEST_CASE("Run: in a pipe there is a line every ten seconds, none of them drawn") {
  const std::string said = minute_of(false, 40);
  CHECK(count(said, '\n') == 5);
  CHECK(count(said, '\x1b') == 0);
  CHECK(said.starts_with("m1: training, 1 device in view 0"));
  CHECK(contains(said, "trained 501,"));
  CHECK(contains(said, "trained 2501,"));
}

TEST_CASE("Run: on a terminal there is one line, as wide as it, and it is ended") {
  const std::string said = minute_of(true, 40);
  CHECK(count(said, '\n') == 1);
  CHECK(said.ends_with("\n"));
  CHECK(count(said, '\r') == 119);
  CHECK(said.substr(said.rfind('\r') + 5).size() <= 40);  // after the sequence that clears the line
}
