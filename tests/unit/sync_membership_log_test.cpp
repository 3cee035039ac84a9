#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "core/rng.h"
#include "tests/support/membership_group.h"
#include "tests/support/wrapped_log.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;
using Group = rivulet::testing::MembershipGroup;
using rivulet::testing::abcd;

TEST_CASE("Membership: the address book hands out what has been read, for the current view only") {
  Group g;
  g.start("a", 2);
  g.start("b", 2);
  g.run(200ms);
  auto& a = g.nodes.at("a");
  auto& b = g.nodes.at("b");
  const std::vector<std::byte> value{std::byte{1}, std::byte{0}, std::byte{255}};
  const auto token = a.view->token;
  bool found = true;
  REQUIRE(a.membership->set(token, "rank0", value));
  CHECK(b.membership->get(token, "rank0", found).empty());
  CHECK_FALSE(found);
  g.run(20ms);
  CHECK(b.membership->get(token, "rank0", found) == value);
  CHECK(found);
  const auto over = a.membership->set(token + 1, "rank0", value);
  REQUIRE_FALSE(over);
  CHECK(over.error().code == ErrorCode::cancelled);
}

TEST_CASE("Membership: garbage in the log is counted and changes nothing") {
  Group g;
  const auto noise = g.log.open();
  Rng rng(3);
  const auto inject = [&] {
    std::vector<std::byte> bytes(rng.below(300));
    for (auto& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
    REQUIRE(noise->append(bytes));
    REQUIRE(noise->append(encode(Close{"a", static_cast<std::int64_t>(rng.below(9)), 1}, "other").value()));
  };
  for (const auto& id : abcd) {
    g.start(id, 4);
    for (int i = 0; i < 200; ++i) inject();
    g.run(20ms);
  }
  g.run(300ms);
  CHECK(g.formed(abcd));
  CHECK(g.nodes.at("a").membership->fold().ignored.total() >= 1600);
}

namespace {

/// Loses records and becomes unreachable, as a broker does.
class LossyLog final : public rivulet::testing::WrappedLog {
 public:
  LossyLog(std::unique_ptr<OrderedLog> whole, Rng& rng) : WrappedLog(std::move(whole)), rng_(rng) {}
  Status append(std::span<const std::byte> bytes) override {
    if (rng_.below(3) == 0) return ok();
    return inner->append(bytes);
  }
  Result<std::span<const LogEntry>> poll(std::size_t max_entries) override {
    if (rng_.below(3) == 0) return Error{ErrorCode::source_lost, "broker away"};
    return inner->poll(max_entries);
  }

 private:
  Rng& rng_;
};

}  // namespace

TEST_CASE("Membership: records that get lost on the way are said again") {
  Rng rng(5);
  MemoryLog log;
  Group g;
  LossyLog end_a(log.open(), rng);
  LossyLog end_b(log.open(), rng);
  const auto a = make_membership(g.config("a", 2), end_a);
  const auto b = make_membership(g.config("b", 2), end_b);
  int views = 0;
  int away = 0;
  for (TimePoint now{}; now < TimePoint{} + 120s && views < 2; now += 50ms) {
    for (auto* m : {a.get(), b.get()}) {
      auto polled = m->poll(now);
      if (!polled) {
        REQUIRE(polled.error().code == ErrorCode::source_lost);
        ++away;
      } else if (polled.value()) {
        ++views;
      }
    }
  }
  CHECK(views == 2);
  CHECK(away > 0);
  for (auto* m : {a.get(), b.get()}) REQUIRE(m->post_saved({1, 40}, "d40", "file"));
  const auto committed = [&] { return a->fold().committed.stamp == Stamp{1, 40}; };
  for (TimePoint now = TimePoint{} + 120s; now < TimePoint{} + 240s && !committed(); now += 50ms)
    for (auto* m : {a.get(), b.get()}) static_cast<void>(m->poll(now));
  CHECK(committed());
}

TEST_CASE("Membership: random starts, kills and lags, and equal prefixes give equal folds on every device") {
  std::uint64_t views = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    Group g;
    g.seed = seed * 1000;
    std::map<std::uint64_t, std::uint64_t> tokens;  // view -> token
    for (int step = 0; step < 600; ++step) {
      const std::string& id = abcd[rng.below(4)];
      if (!g.nodes.contains(id) || rng.below(150) == 0) g.start(id, 4);
      if (rng.below(200) == 0) g.nodes.erase(abcd[rng.below(4)]);
      const auto it = g.nodes.find(id);
      if (it != g.nodes.end()) it->second.step(g.now);
      if (it != g.nodes.end() && it->second.view) {
        const auto [known, first] = tokens.emplace(it->second.view->number, it->second.view->token);
        REQUIRE(known->second == it->second.view->token);
      }
      g.now += 10ms;
    }
    std::uint64_t last = 0;
    for (const auto& [number, token] : tokens) {
      REQUIRE(token > last);
      last = token;
      ++views;
    }
    // The same prefix, folded by a new device.
    for (auto& [id, node] : g.nodes) {
      Fold reference;
      const auto reader = g.log.open();
      const auto entries = reader->poll(1'000'000);
      REQUIRE(entries);
      for (const auto& entry : entries.value()) {
        if (entry.offset >= node.membership->fold().next_offset) break;
        apply(reference, entry, "mnist");
      }
      REQUIRE((reference == node.membership->fold()));
    }
    for (const auto& id : abcd) {
      if (!g.nodes.contains(id) || g.nodes.at(id).error) g.start(id, 4);
    }
    g.run(3s);
    REQUIRE_MESSAGE(g.formed(abcd), "seed ", seed);
  }
  CHECK(views > 80);
}

TEST_CASE("Membership: the address book may be used by another thread while the log is read") {
  Group g;
  g.form({"a", "b"});
  const auto token = g.nodes.at("a").view->token;
  auto& book = *g.nodes.at("a").membership;
  std::atomic<int> seen{0};
  std::atomic<bool> stop{false};
  std::thread connecting([&] {
    for (int i = 0; i < 50; ++i) {
      const std::string key = "k" + std::to_string(i);
      if (!book.set(token, key, std::vector<std::byte>(200, static_cast<std::byte>(i)))) break;
      bool found = false;
      while (!found && !stop) {
        const auto value = book.get(token, key, found);
        if (found && value == std::vector<std::byte>(200, static_cast<std::byte>(i))) ++seen;
      }
    }
    stop = true;
  });
  for (int i = 0; i < 10'000'000 && !stop; ++i) {
    for (auto& entry : g.nodes) entry.second.step(g.now);
  }
  stop = true;
  connecting.join();
  CHECK(seen == 50);
}

TEST_CASE(
    "Membership: a control log whose beginning is gone is refused, and no good copy is given up for it") {
  struct CutLog final : rivulet::testing::WrappedLog {
    using WrappedLog::WrappedLog;
    Result<std::span<const LogEntry>> poll(std::size_t max) override {
      auto read = inner->poll(max);
      if (!read) return read;
      moved.assign(read.value().begin(), read.value().end());
      for (auto& entry : moved) entry.offset += 5000;
      return std::span<const LogEntry>(moved);
    }
    std::vector<LogEntry> moved;
  };
  Group group;
  CutLog log(group.log.open());
  const auto membership = make_membership(group.config("a", 1), log);
  membership->announce_state({3, 500}, "d", 5000);
  std::optional<Error> error;
  for (TimePoint now{}; !error && now < TimePoint(5s); now += 10ms)
    if (auto polled = membership->poll(now); !polled) error = polled.error();
  REQUIRE(error);
  CHECK(error->code == ErrorCode::invalid_config);
  CHECK(error->message.find("begins at offset 5000") != std::string::npos);
  CHECK(error->message.find("empty") == std::string::npos);
}
