#include <doctest/doctest.h>

#include <atomic>
#include <cstring>
#include <string>
#include <thread>

#include "sync/membership/membership.h"
#include "tests/conformance/ordered_log_suite.h"

using namespace rivulet;
using namespace rivulet::sync::membership;

namespace {

/// Reads all entries that the log has now, as text; checks the guarantees of every OrderedLog.
std::vector<std::string> drain(OrderedLog& log, std::size_t max_entries, std::int64_t& last_offset) {
  std::vector<std::string> texts;
  while (true) {
    const auto entries = log.poll(max_entries);
    REQUIRE(entries);
    REQUIRE(entries.value().size() <= max_entries);
    if (entries.value().empty()) return texts;
    for (const auto& entry : entries.value()) {
      REQUIRE(entry.offset > last_offset);
      last_offset = entry.offset;
      texts.emplace_back(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
    }
  }
}

}  // namespace

TEST_CASE("Ordered logs: the log in memory keeps what every log promises") {
  testing::check_ordered_log([] {
    testing::LogWorld world;
    world.open = [log = std::make_shared<MemoryLog>()] { return log->open(); };
    world.wait = [left = 10'000'000]() mutable { return --left > 0; };
    return world;
  });
}

TEST_CASE("Log in memory: every end reads every record once, in one order, whatever it asks for at a time") {
  MemoryLog log;
  const auto writer = log.open();
  const auto early = log.open();
  std::vector<std::string> written;
  for (int i = 0; i < 100; ++i) {
    written.push_back(std::string(static_cast<std::size_t>(i % 7), 'x') + std::to_string(i));
    REQUIRE(writer->append(testing::bytes_of_text(written.back())));
  }
  const auto late = log.open();
  for (auto* end : {early.get(), late.get(), writer.get()}) {
    std::int64_t last = -1;
    CHECK(drain(*end, end == early.get() ? 3 : 64, last) == written);
    CHECK(drain(*end, 3, last).empty());
  }
  CHECK(log.size() == 100);
}

TEST_CASE("Log in memory: caught_up means what existed at open has been handed out, not what came since") {
  MemoryLog log;
  const auto writer = log.open();
  CHECK(writer->caught_up());
  REQUIRE(writer->append(testing::bytes_of_text("1")));
  REQUIRE(writer->append(testing::bytes_of_text("2")));
  const auto reader = log.open();
  CHECK_FALSE(reader->caught_up());
  REQUIRE(reader->poll(1));
  CHECK_FALSE(reader->caught_up());
  REQUIRE(writer->append(testing::bytes_of_text("3")));
  REQUIRE(reader->poll(1));
  CHECK(reader->caught_up());
}

TEST_CASE("Log in memory: an end outlives the log's owner") {
  auto log = std::make_unique<MemoryLog>();
  const auto end = log->open();
  log.reset();
  REQUIRE(end->append(testing::bytes_of_text("still here")));
  CHECK(end->poll(8).value().size() == 1);
}

TEST_CASE("Log in memory: too long a record is refused") {
  MemoryLog log;
  const auto end = log.open();
  const auto refused = end->append(std::vector<std::byte>(record_max_bytes + 1));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::unavailable);
  CHECK(log.size() == 0);
}

TEST_CASE("Log in memory: threads append while others read; all see one order") {
  MemoryLog log;
  constexpr int writers = 4;
  constexpr int each = 500;
  std::vector<std::jthread> threads;
  threads.reserve(writers);
  for (int w = 0; w < writers; ++w) {
    threads.emplace_back([&, w] {
      const auto end = log.open();
      for (int i = 0; i < each; ++i) {
        if (!end->append(testing::bytes_of_text(std::to_string(w) + ":" + std::to_string(i)))) std::abort();
      }
    });
  }
  const auto reader = log.open();
  std::vector<std::string> seen;
  std::int64_t last = -1;
  while (seen.size() < std::size_t{writers} * each) {
    for (auto& text : drain(*reader, 32, last)) seen.push_back(std::move(text));
  }
  threads.clear();
  const auto second = log.open();
  std::int64_t again = -1;
  CHECK(drain(*second, 1000, again) == seen);
  std::vector<int> next(writers, 0);
  for (const auto& text : seen) {
    const auto writer = static_cast<std::size_t>(text[0] - '0');
    REQUIRE(std::stoi(text.substr(2)) == next[writer]++);
  }
}
