#include <doctest/doctest.h>
#include <fcntl.h>
#include <pty.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "runtime/process/log.h"
#include "runtime/process/log_line.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr long long some_time_ms = 1'767'323'045'006;  // 2026-01-02 03:04:05.006
const std::string nasty = "a \"b\"\\\n\tc=\x1b[31m\x01\xff";

/// Counts by label value, as a sink for one counter family.
struct CountingMetrics final : MetricsSink {
  struct Count final : Counter {
    void add(double amount) noexcept override { total += amount; }
    double total = 0;
  };
  Counter& counter(std::string_view name, Labels labels) override {
    std::string key(name);
    for (const auto& [label, value] : labels) key += " " + std::string(label) + "=" + std::string(value);
    return counts[key];
  }
  Gauge& gauge(std::string_view, Labels) override { return null.gauge("", {}); }
  Histogram& histogram(std::string_view, Labels) override { return null.histogram("", {}); }
  void remove(std::string_view, Labels) override {}
  std::map<std::string, Count> counts;
  NullMetrics null;
};

/// Stderr output of `body`, redirected to `end`; reads it from `begin`.
template <class Body>
std::string captured(int begin, int end, Body body) {
  std::fflush(stderr);
  const int saved = dup(STDERR_FILENO);
  dup2(end, STDERR_FILENO);
  body();
  std::fflush(stderr);
  dup2(saved, STDERR_FILENO);
  close(saved);
  fcntl(begin, F_SETFL, O_NONBLOCK);
  std::string text;
  char buffer[4096];
  for (ssize_t n = 0; (n = read(begin, buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  close(begin);
  close(end);
  return text;
}

template <class Body>
std::string on_pipe(Body body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  return captured(ends[0], ends[1], body);
}

template <class Body>
std::string on_terminal(Body body) {
  int master = -1;
  int slave = -1;
  REQUIRE(openpty(&master, &slave, nullptr, nullptr, nullptr) == 0);
  return captured(master, slave, body);
}

void say_one(const std::string& format) {
  NullMetrics metrics;
  auto logger = make_logger("info", format, metrics);
  REQUIRE(logger);
  logger.value()->write(Level::warn, "broker is away", {{"broker", "kafka:9092"}});
}

std::size_t lines_of(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

}  // namespace

TEST_CASE("Log: logfmt quotes what needs it and nothing else") {
  CHECK(format_line(LogFormat::logfmt, some_time_ms, Level::info, "group formed",
                    {{"view", "2"}, {"members", "a, b"}, {"empty", ""}}) ==
        "time=2026-01-02T03:04:05.006Z level=info msg=\"group formed\" view=2 members=\"a, b\" empty=\"\"");
  CHECK(
      format_line(LogFormat::logfmt, some_time_ms, Level::error, "x", {{"v", nasty}}) ==
      "time=2026-01-02T03:04:05.006Z level=error msg=x v=\"a \\\"b\\\"\\\\\\n\\tc=\\u001b[31m\\u0001\\xff\"");
}

TEST_CASE("Log: JSON gives back what went in, whatever it was") {
  const std::string line =
      format_line(LogFormat::json, some_time_ms, Level::debug, nasty, {{"k\"1", nasty}, {"n", "7"}});
  CHECK(line.find('\n') == std::string::npos);
  const auto parsed = nlohmann::json::parse(line);
  const std::string expected =
      "a \"b\"\\\n\tc=\x1b[31m\x01\xef\xbf\xbd";  // the invalid UTF-8 byte is replaced
  CHECK(parsed["msg"] == expected);
  CHECK(parsed["k\"1"] == expected);
  CHECK(parsed["n"] == "7");
  CHECK(parsed["level"] == "debug");
  CHECK(parsed["time"] == "2026-01-02T03:04:05.006Z");
}

TEST_CASE("Log: pretty lines are aligned, coloured on request, and cannot be forged") {
  CHECK(format_line(LogFormat::pretty, some_time_ms, Level::info, "group formed", {{"view", "2"}}) ==
        "03:04:05.006 info  group formed  view=2");
  CHECK(format_line(LogFormat::pretty_color, some_time_ms, Level::error, "lost", {}) ==
        "03:04:05.006 \x1b[31merror\x1b[0m lost");
  const std::string forged =
      format_line(LogFormat::pretty, some_time_ms, Level::info, nasty, {{"x\n", nasty}});
  CHECK(forged.find('\n') == std::string::npos);
  CHECK(forged.find('\x1b') == std::string::npos);
}

TEST_CASE("Log: auto is logfmt in a pipe and pretty on a terminal; colours need a terminal and no NO_COLOR") {
  unsetenv("NO_COLOR");
  const std::string piped = on_pipe([] { say_one("auto"); });
  CHECK(contains(piped, "level=warn msg=\"broker is away\" broker=kafka:9092\n"));
  CHECK(!contains(on_pipe([] { say_one("pretty"); }), "\x1b"));
  const std::string shown = on_terminal([] { say_one("auto"); });
  CHECK(contains(shown, "\x1b[33mwarn \x1b[0m broker is away  broker=kafka:9092"));
  CHECK(!contains(on_terminal([] { say_one("json"); }), "\x1b"));
  setenv("NO_COLOR", "1", 1);
  const std::string calm = on_terminal([] { say_one("auto"); });
  CHECK(!contains(calm, "\x1b[33m"));
  CHECK(contains(calm, "warn  broker is away  broker=kafka:9092"));
  setenv("NO_COLOR", "", 1);  // set but empty has no effect, by convention
  CHECK(contains(on_terminal([] { say_one("auto"); }), "\x1b"));
  unsetenv("NO_COLOR");
}

TEST_CASE("Log: levels below the configured one are not written; every line is counted by level") {
  CountingMetrics metrics;
  const std::string text = on_pipe([&] {
    const auto logger = make_logger("warn", "logfmt", metrics);
    REQUIRE(logger);
    logger.value()->write(Level::debug, "one");
    logger.value()->write(Level::info, "two");
    logger.value()->write(Level::warn, "three");
    logger.value()->write(Level::error, "four");
    logger.value()->write(Level::error, "five {} %s");
  });
  CHECK(lines_of(text) == 3);
  CHECK(contains(text, "msg=\"five {} %s\"\n"));
  CHECK(metrics.counts["log_messages_total level=debug"].total == 0);
  CHECK(metrics.counts["log_messages_total level=info"].total == 0);
  CHECK(metrics.counts["log_messages_total level=warn"].total == 1);
  CHECK(metrics.counts["log_messages_total level=error"].total == 2);
}

TEST_CASE("Log: a repeated message is said once and counted, then told") {
  NullMetrics metrics;
  const std::string text = on_pipe([&] {
    const auto logger = make_logger("info", "logfmt", metrics);
    REQUIRE(logger);
    for (int i = 0; i < 42; ++i) logger.value()->write(Level::warn, "broker is away");
    logger.value()->write(Level::info, "broker is away");  // another level is another message
  });
  CHECK(lines_of(text) == 3);
  CHECK(contains(text, "level=warn msg=\"broker is away (repeated 41 times)\"\n"));
  CHECK(contains(text, "level=info msg=\"broker is away\"\n"));
}

TEST_CASE("Log: the same words about different things are said a few times") {
  RepeatFilter filter;
  const TimePoint now(10s);
  int said = 0;
  for (int i = 0; i < 20; ++i)
    said += filter.admit(now, Level::warn, "peer lost", {{"peer", std::to_string(i)}});
  CHECK(said == RepeatFilter::varied_max);
  CHECK(filter.take_ended(now + 999ms).empty());
  const auto ended = filter.take_ended(now + 1s);
  REQUIRE(ended.size() == 1);
  CHECK(ended[0].message == "peer lost");
  CHECK(ended[0].count == 15);
  CHECK(filter.take_ended(now + 2s).empty());
  CHECK(filter.admit(now + 2s, Level::warn, "peer lost", {}));
}

TEST_CASE("Log: the memory of messages has a bound, and above it nothing is swallowed") {
  RepeatFilter filter;
  const TimePoint now(10s);
  for (std::size_t i = 0; i < RepeatFilter::messages_max; ++i)
    CHECK(filter.admit(now, Level::info, std::to_string(i), {}));
  CHECK(filter.admit(now, Level::info, "one too many", {}));
  CHECK(filter.admit(now, Level::info, "one too many", {}));
  CHECK(!filter.admit(now, Level::info, "0", {}));
  CHECK(filter.take_ended(now + 1s).size() == 1);
  CHECK(filter.admit(now + 1s, Level::info, "one too many", {}));
  CHECK(!filter.admit(now + 1s, Level::info, "one too many", {}));
}

TEST_CASE("Log: threads do not tear each other's lines") {
  NullMetrics metrics;
  const std::string text = on_pipe([&] {
    const auto logger = make_logger("info", "json", metrics);
    REQUIRE(logger);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 50; ++i)
          logger.value()->write(Level::info, std::to_string(t) + "." + std::to_string(i));
      });
    }
    for (auto& thread : threads) thread.join();
  });
  std::istringstream lines(text);
  int whole = 0;
  for (std::string line; std::getline(lines, line);) whole += nlohmann::json::accept(line);
  CHECK(whole == 200);
}

TEST_CASE("Log: an unknown level or format is refused with the choices; the null logger swallows") {
  NullMetrics metrics;
  const auto level = make_logger("loud", "auto", metrics);
  REQUIRE(!level);
  CHECK(level.error().code == ErrorCode::invalid_config);
  CHECK(level.error().message == "log.level = 'loud' must be one of: debug, info, warn, error");
  const auto format = make_logger("info", "xml", metrics);
  REQUIRE(!format);
  CHECK(format.error().message == "log.format = 'xml' must be one of: auto, pretty, logfmt, json");
  CHECK(on_pipe([] { make_null_logger()->write(Level::error, "nothing"); }).empty());
}
