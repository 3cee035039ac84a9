#pragma once
#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/log.h"
#include "tests/support/text.h"

/// Guarantees of every OrderedLog, in memory or in Kafka.
namespace rivulet::testing {

/// One log, initially empty, that can be opened any number of times.
struct LogWorld {
  std::function<std::unique_ptr<OrderedLog>()> open;
  /// Called between empty polls; false ends the wait.
  std::function<bool()> wait;
};

/// Reads until `count` records have arrived; checks order and bounds.
inline std::vector<std::string> read_log(LogWorld& world, OrderedLog& log, std::size_t count,
                                         std::size_t most = 64) {
  std::vector<std::string> texts;
  std::int64_t last = -1;
  while (texts.size() < count) {
    const auto entries = log.poll(most);
    REQUIRE_MESSAGE(entries, entries.error().message);
    REQUIRE(entries.value().size() <= most);
    for (const auto& entry : entries.value()) {
      REQUIRE(entry.offset > last);
      last = entry.offset;
      texts.emplace_back(reinterpret_cast<const char*>(entry.bytes.data()), entry.bytes.size());
    }
    if (entries.value().empty() && !world.wait()) break;
  }
  return texts;
}

inline void log_gives_everyone_one_order(LogWorld& world) {
  const auto first = world.open();
  const auto second = world.open();
  std::vector<std::string> written;
  for (int i = 0; i < 120; ++i) {
    written.push_back(std::to_string(i) + std::string(static_cast<std::size_t>(i % 9), 'x'));
    REQUIRE((i % 40 < 20 ? first : second)->append(bytes_of_text(written.back())));
    if (i % 20 == 19) {  // the other writer continues only after it has read this
      const auto seen = read_log(world, *world.open(), static_cast<std::size_t>(i + 1));
      REQUIRE(seen == written);
    }
  }
  CHECK(read_log(world, *first, 120, 7) == written);
  CHECK(read_log(world, *second, 120) == written);
  CHECK(read_log(world, *world.open(), 120, 1) == written);
}

inline void log_says_when_it_caught_up(LogWorld& world) {
  const auto writer = world.open();
  for (int i = 0; i < 10; ++i) REQUIRE(writer->append(bytes_of_text(std::to_string(i))));
  CHECK(read_log(world, *writer, 10).size() == 10);
  const auto late = world.open();
  CHECK_FALSE(late->caught_up());
  CHECK(read_log(world, *late, 4, 1).size() == 4);
  CHECK_FALSE(late->caught_up());
  CHECK(read_log(world, *late, 6, 1).size() == 6);
  CHECK(late->caught_up());
}

inline void log_of_nothing_is_caught_up(LogWorld& world) {
  const auto log = world.open();
  while (!log->caught_up() && world.wait()) {
    const auto entries = log->poll(8);
    REQUIRE_MESSAGE(entries, entries.error().message);
    CHECK(entries.value().empty());
  }
  CHECK(log->caught_up());
}

inline void log_takes_records_from_any_thread(LogWorld& world) {
  const auto log = world.open();
  constexpr int writers = 4;
  constexpr int each = 50;
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int w = 0; w < writers; ++w)
    threads.emplace_back([&, w] {
      for (int i = 0; i < each; ++i)
        if (!log->append(bytes_of_text(std::to_string(w) + ":" + std::to_string(i)))) ++refused;
    });
  const auto seen = read_log(world, *log, writers * each, 16);
  for (auto& thread : threads) thread.join();
  CHECK(refused == 0);
  CHECK(read_log(world, *world.open(), writers * each) == seen);
  std::vector<int> next(writers, 0);
  for (const auto& text : seen)
    CHECK(std::stoi(text.substr(2)) == next[static_cast<std::size_t>(text[0] - '0')]++);
  for (const int n : next) CHECK(n == each);
}

/// Each check gets a new log.
inline void check_ordered_log(const std::function<LogWorld()>& make) {
  for (auto* check : {log_gives_everyone_one_order, log_says_when_it_caught_up, log_of_nothing_is_caught_up,
                      log_takes_records_from_any_thread}) {
    LogWorld world = make();
    check(world);
  }
}

}  // namespace rivulet::testing
