#include <doctest/doctest.h>

#include <atomic>
#include <map>
#include <memory>
#include <thread>

#include "core/rng.h"
#include "sync/membership/membership.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;

namespace {

struct Node {
  MembershipConfig config;
  std::unique_ptr<OrderedLog> log;
  std::unique_ptr<Membership> membership;
  std::optional<ViewSpec> view;
  std::optional<Error> error;

  void step(TimePoint now) {
    if (error) return;
    if (membership->view_broken()) {
      view.reset();
      membership->leave_view("a member started anew");
    }
    auto polled = membership->poll(now);
    if (!polled) {
      error = polled.error();
      view.reset();
    } else if (polled.value()) {
      view = polled.value();
    }
  }
};

/// A group over one log in memory, driven by hand.
struct Group {
  MemoryLog log;
  TimePoint now{};
  std::uint64_t seed = 1;
  std::map<std::string, Node> nodes;

  MembershipConfig config(const std::string& id, std::uint32_t devices, const std::string& tick = "100ms") {
    MembershipConfig c;
    c.job = "mnist";
    c.hello.device = id;
    c.hello.host = "host-" + id;
    c.hello.pid = 100;
    c.hello.devices = devices;
    c.hello.config = {{"batch.tick", tick}, {"job.devices", std::to_string(devices)}};
    c.hello.config_hash = tick + std::to_string(devices);
    c.hello.partitions = {"mnist:" + id};
    c.nonce_seed = ++seed;
    return c;
  }
  void start(const MembershipConfig& c, const std::string& as = "") {
    Node node;
    node.config = c;
    node.log = log.open();
    node.membership = make_membership(c, *node.log);
    nodes[as.empty() ? c.hello.device : as] = std::move(node);
  }
  void start(const std::string& id, std::uint32_t devices, const std::string& tick = "100ms") {
    start(config(id, devices, tick));
  }
  void kill_all() { nodes.clear(); }
  void run(Duration time) {
    for (const TimePoint end = now + time; now < end; now += 10ms) {
      for (auto& entry : nodes) entry.second.step(now);
    }
  }
  bool formed(const std::vector<std::string>& ids) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const auto& view = nodes.at(ids[i]).view;
      if (!view || view->members != ids || view->rank != i) return false;
      if (view->token != nodes.at(ids[0]).view->token) return false;
    }
    return true;
  }
  std::string error(const std::string& id) {
    const auto& e = nodes.at(id).error;
    return e ? std::string(name_of(e->code)) + ": " + e->message : "none";
  }
};

const std::vector<std::string> abcd{"a", "b", "c", "d"};

}  // namespace

TEST_CASE("Membership: four devices form one view, ranks by sorted id") {
  Group g;
  for (const auto* id : {"d", "b", "a", "c"}) g.start(id, 4);
  g.run(200ms);
  CHECK(g.formed(abcd));
  CHECK(g.nodes.at("c").view->number == 1);
  CHECK(g.log.size() <= 4 + 8 + 1);
  CHECK(g.nodes.at("a").membership->waiting_for().empty());
}

TEST_CASE("Membership: one device is a group of its own at once") {
  Group g;
  g.start("a", 1);
  g.run(100ms);
  CHECK(g.formed({"a"}));
}

TEST_CASE("Membership: while it waits it says for whom") {
  Group g;
  g.start("a", 3);
  CHECK(g.nodes.at("a").membership->waiting_for() == std::vector<std::string>{"the control log"});
  g.run(100ms);
  CHECK(g.nodes.at("a").membership->waiting_for() == std::vector<std::string>{"2 more devices"});
  g.start("b", 3);
  g.run(100ms);
  CHECK(g.nodes.at("a").membership->waiting_for() == std::vector<std::string>{"1 more device"});
  g.start("c", 3);
  g.run(100ms);
  REQUIRE(g.formed({"a", "b", "c"}));
  g.kill_all();
  g.start("b", 3);
  g.run(100ms);
  CHECK(g.nodes.at("b").membership->waiting_for() == std::vector<std::string>{"a", "c"});
}

TEST_CASE("Membership: the others close when the first member does not, after close_wait") {
  Group g;
  for (const auto& id : abcd) g.start(id, 4);
  // Everybody is ready, then the first member dies before its CLOSE.
  for (int i = 0; i < 3; ++i) {
    for (auto& entry : g.nodes) entry.second.step(g.now);
    if (g.nodes.at("d").membership->fold().view.number == 0 && i == 1) g.nodes.erase("a");
  }
  g.run(900ms);
  CHECK_FALSE(g.nodes.at("b").view);
  g.run(300ms);
  REQUIRE(g.nodes.at("b").view);
  CHECK(g.nodes.at("b").view->members == abcd);  // it said READY after the last HELLO; connecting will tell
}

TEST_CASE("Membership: a member that starts anew breaks the view and the next one forms") {
  Group g;
  for (const auto& id : abcd) g.start(id, 4);
  g.run(200ms);
  REQUIRE(g.formed(abcd));
  const auto token = g.nodes.at("a").view->token;
  g.start("c", 4);
  g.nodes.at("c").step(g.now);  // its HELLO alone is enough
  REQUIRE(g.nodes.at("a").membership->poll(g.now));
  CHECK(g.nodes.at("a").membership->view_broken());
  g.run(300ms);
  CHECK(g.formed(abcd));
  CHECK(g.nodes.at("a").view->number == 2);
  CHECK(g.nodes.at("a").view->token > token);
}

TEST_CASE("Membership: a device that left makes the view broken for the others, and all meet in the next") {
  Group g;
  for (const auto& id : abcd) g.start(id, 4);
  g.run(200ms);
  auto& b = *g.nodes.at("b").membership;
  b.leave_view("peer d is lost");
  REQUIRE(b.poll(g.now));
  CHECK_FALSE(b.view_broken());
  REQUIRE(g.nodes.at("a").membership->poll(g.now));
  CHECK(g.nodes.at("a").membership->view_broken());
  CHECK(g.nodes.at("a").membership->fold().devices.at("b").ready->reason == "peer d is lost");
  g.run(300ms);
  CHECK(g.formed(abcd));
  CHECK(g.nodes.at("b").view->number == 2);
}

TEST_CASE("Membership: generations of dead sessions do not keep a restarted group from forming") {
  Rng rng(11);
  Group g;
  for (int generation = 0; generation < 60; ++generation) {
    // Some start, at random times, and all are killed while forming or while training.
    for (const auto& id : abcd) {
      if (rng.below(5) != 0) g.start(id, 4);
      g.run(10ms * static_cast<int>(rng.below(12)));
    }
    g.run(10ms * static_cast<int>(rng.below(30)));
    g.kill_all();
    if (generation % 4 != 3) continue;
    for (const auto& id : abcd) {
      CHECK_FALSE(g.nodes.contains(id));
      g.start(id, 4);
      g.run(10ms * static_cast<int>(rng.below(200)));
      if (id != "d") REQUIRE_MESSAGE(!g.nodes.at("a").view, "a view with a device that is not up");
    }
    g.run(500ms);
    REQUIRE_MESSAGE(g.formed(abcd), "generation ", generation);
    g.kill_all();
  }
}

TEST_CASE("Membership: a changed configuration forms although dead sessions of the old one are in the log") {
  Group g;
  for (const auto* id : {"a", "b", "c"}) g.start(id, 4, "50ms");
  g.run(300ms);  // killed while forming: three READYs with the old configuration stay behind
  g.kill_all();
  g.start("a", 4);
  g.run(10s);  // far longer than mismatch_grace
  CHECK(g.error("a") == "none");
  for (const auto* id : {"b", "c", "d"}) g.start(id, 4);
  g.run(500ms);
  CHECK(g.formed(abcd));
}

TEST_CASE("Membership: fewer devices than before form, whatever the missing one left behind") {
  Group g;
  for (const auto& id : abcd) g.start(id, 4);
  g.run(300ms);
  REQUIRE(g.formed(abcd));
  g.kill_all();
  for (const auto* id : {"d", "a", "b"}) g.start(id, 4);  // READY for view 2, then killed
  g.run(300ms);
  g.kill_all();
  for (const auto* id : {"a", "b", "c"}) g.start(id, 3);
  g.run(500ms);
  CHECK(g.formed({"a", "b", "c"}));
}

TEST_CASE("Membership: a device under a new name takes the place of a dead one") {
  Group g;
  for (const auto* id : {"a", "b", "c"}) g.start(id, 4);
  auto old = g.config("d", 4);
  g.start(old);
  for (int i = 0; i < 2; ++i) g.nodes.at("d").step(g.now);
  g.nodes.erase("d");
  g.run(100ms);
  auto renamed = g.config("e", 4);
  renamed.hello.partitions = old.hello.partitions;
  g.start(renamed);
  g.run(500ms);
  CHECK(g.formed({"a", "b", "c", "e"}));
}

TEST_CASE("Membership: different configurations name the key, both values and both devices on both") {
  Group g;
  g.start("a", 2);
  g.run(100ms);
  g.start("b", 2, "50ms");
  g.run(2900ms);
  CHECK(g.error("a") == "none");
  g.run(300ms);
  const std::string expected = "invalid_config: 'batch.tick' is 100ms on a and 50ms on b";
  CHECK(g.error("a") == expected);
  CHECK(g.error("b") == expected);
}

TEST_CASE("Membership: a mismatching device that comes back corrected within the grace forms the group") {
  Group g;
  g.start("a", 2);
  g.start("b", 2, "50ms");
  g.run(2s);
  g.start("b", 2);
  g.run(2s);
  CHECK(g.error("a") == "none");
  CHECK(g.formed({"a", "b"}));
}

TEST_CASE("Membership: a third device that keeps restarting cannot hide a mismatch") {
  Group g;
  g.start("a", 4);
  g.start("b", 4, "50ms");
  for (int i = 0; i < 8; ++i) {
    g.start("c", 4);
    g.run(500ms);
  }
  CHECK(g.error("a") == "invalid_config: 'batch.tick' is 100ms on a and 50ms on b");
}

TEST_CASE("Membership: a partition claimed twice names both devices and the partition") {
  Group g;
  auto a = g.config("a", 2);
  auto b = g.config("b", 2);
  b.hello.partitions = a.hello.partitions;
  g.start(a);
  g.start(b);
  g.run(3500ms);
  CHECK(g.error("b") ==
        "invalid_config: partition mnist:a is claimed by a and by b; every device needs its own "
        "(source.partitions)");
  CHECK(g.error("a") == g.error("b"));
}

TEST_CASE("Membership: more devices than job.devices is an error, in forming and for a running group") {
  Group g;
  for (const auto* id : {"a", "b", "c"}) g.start(id, 2);
  // The HELLOs of all three come before the first READY, so that no two of them close first.
  g.run(3500ms);
  CHECK(g.error("a") == "invalid_config: 3 devices want to be in a group of job.devices = 2: a, b, c");

  Group running;
  running.start("a", 2);
  running.start("b", 2);
  running.run(300ms);
  REQUIRE(running.formed({"a", "b"}));
  running.start("c", 2);
  running.start("d", 5);
  running.run(4s);
  CHECK(running.formed({"a", "b"}));
  CHECK(running.error("c") == "invalid_config: 3 devices want to be in a group of job.devices = 2: a, b, c");
  CHECK(running.error("d") == "invalid_config: 'job.devices' is 2 on a and 5 on d");
}

TEST_CASE("Membership: a newer session of the same device ends the older one and is named") {
  Group g;
  g.start("a", 2);
  g.run(100ms);
  auto newer = g.config("a", 2);
  newer.hello.host = "spare";
  newer.hello.pid = 4242;
  g.start(newer, "a-again");
  g.run(100ms);
  CHECK(g.error("a") == "superseded: a newer session of device a was started on host spare (pid 4242)");
  CHECK(g.error("a-again") == "none");
}

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
  CHECK(g.nodes.at("a").membership->fold().ignored >= 1600);
}

namespace {

/// Loses records and goes away, as a broker does.
class LossyLog final : public OrderedLog {
 public:
  LossyLog(OrderedLog& inner, Rng& rng) : inner_(inner), rng_(rng) {}
  Status append(std::span<const std::byte> bytes) override {
    if (rng_.below(3) == 0) return ok();
    return inner_.append(bytes);
  }
  Result<std::span<const LogEntry>> poll(std::size_t max_entries) override {
    if (rng_.below(3) == 0) return Error{ErrorCode::source_lost, "broker away"};
    return inner_.poll(max_entries);
  }
  [[nodiscard]] bool caught_up() const override { return inner_.caught_up(); }

 private:
  OrderedLog& inner_;
  Rng& rng_;
};

}  // namespace

TEST_CASE("Membership: records that get lost on the way are said again") {
  Rng rng(5);
  MemoryLog log;
  Group g;
  const auto inner_a = log.open();
  const auto inner_b = log.open();
  LossyLog end_a(*inner_a, rng);
  LossyLog end_b(*inner_b, rng);
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
}

TEST_CASE("Membership: random starts, kills and lags, and equal prefixes give equal folds on every device") {
  std::uint64_t views = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Rng rng(seed);
    Group g;
    g.seed = seed * 1000;
    std::map<std::uint64_t, std::uint64_t> tokens;  // view -> token
    for (int step = 0; step < 600; ++step) {
      const std::string id = abcd[rng.below(4)];
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
    // The same prefix, folded by somebody who was not there.
    for (auto& [id, node] : g.nodes) {
      Fold reference;
      const auto reader = g.log.open();
      const auto entries = reader->poll(1'000'000);
      REQUIRE(entries);
      for (const auto& entry : entries.value()) {
        if (entry.offset >= node.membership->fold().next_offset) break;
        apply(reference, entry.offset, decode(entry.bytes, "mnist").value());
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
  g.start("a", 2);
  g.start("b", 2);
  g.run(200ms);
  REQUIRE(g.formed({"a", "b"}));
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

TEST_CASE("Membership: a view starts from the best state that its members hold, and names its holders") {
  Group group;
  group.start("a", 2);
  group.start("b", 2);
  for (auto& entry : group.nodes) entry.second.membership->hold_state({}, "d0");
  group.run(2s);
  REQUIRE(group.formed({"a", "b"}));
  CHECK(group.nodes.at("a").view->holders == std::vector<std::uint32_t>{0, 1});
  group.nodes.at("b").membership->hold_state({1, 5}, "d5");  // b has applied a round that a has not
  group.nodes.at("a").membership->hold_state({1, 4}, "d4");
  for (auto& entry : group.nodes) entry.second.membership->leave_view("lost");
  group.run(3s);
  for (auto& entry : group.nodes) {
    REQUIRE(entry.second.view);
    CHECK(entry.second.view->number == 2);
    CHECK(entry.second.view->target == Stamp{1, 5});
    CHECK(entry.second.view->digest == "d5");
    CHECK(entry.second.view->holders == std::vector<std::uint32_t>{1});
  }
  for (auto& entry : group.nodes) CHECK(entry.second.membership->say_saved({2, 6}, "d6", "file"));
  group.run(1s);
  for (auto& entry : group.nodes) CHECK(entry.second.membership->fold().committed == Committed{{2, 6}, "d6"});
}

TEST_CASE(
    "Membership: a control log whose beginning is gone is refused, and no good copy is given up for it") {
  struct CutLog final : OrderedLog {
    explicit CutLog(std::unique_ptr<OrderedLog> whole) : inner(std::move(whole)) {}
    Status append(std::span<const std::byte> bytes) override { return inner->append(bytes); }
    Result<std::span<const LogEntry>> poll(std::size_t max) override {
      auto read = inner->poll(max);
      if (!read) return read;
      moved.assign(read.value().begin(), read.value().end());
      for (auto& entry : moved) entry.offset += 5000;
      return std::span<const LogEntry>(moved);
    }
    [[nodiscard]] bool caught_up() const override { return inner->caught_up(); }
    std::unique_ptr<OrderedLog> inner;
    std::vector<LogEntry> moved;
  };
  Group group;
  CutLog log(group.log.open());
  const auto membership = make_membership(group.config("a", 1), log);
  membership->hold_state({3, 500}, "d");
  std::optional<Error> error;
  for (TimePoint now{}; !error && now < TimePoint(5s); now += 10ms)
    if (auto polled = membership->poll(now); !polled) error = polled.error();
  REQUIRE(error);
  CHECK(error->code == ErrorCode::invalid_config);
  CHECK(error->message.find("begins at offset 5000") != std::string::npos);
  CHECK(error->message.find("empty") == std::string::npos);
}

TEST_CASE("Membership: a state of another run is refused at once, with what to do") {
  Group group;
  group.start("a", 2);
  group.start("b", 2);
  group.nodes.at("a").membership->hold_state({3, 500}, "d");
  group.run(1s);
  const auto& error = group.nodes.at("a").error;
  REQUIRE(error);
  CHECK(error->code == ErrorCode::invalid_config);
  CHECK(error->message ==
        "the saved state 3.500 of a is of another run: the control topic of job mnist knows 0 views. To "
        "start over, "
        "empty the folder checkpoints in its device.data_dir");
  CHECK_FALSE(group.nodes.at("b").error);
}
