#pragma once
#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sync/membership/membership.h"

namespace rivulet::testing {

/// One device's membership, advanced by the test.
struct MembershipNode {
  sync::membership::MembershipConfig config;
  std::unique_ptr<OrderedLog> log;
  std::unique_ptr<sync::membership::Membership> membership;
  std::optional<sync::ViewSpec> view;
  std::optional<Error> error;

  [[nodiscard]] const std::string& id() const { return config.hello.device; }
  void step(TimePoint now) {
    if (error) return;
    if (membership->view_broken()) {
      view.reset();
      membership->leave_view("a member started anew");
    }
    auto polled = membership->poll(now);
    if (!polled) {
      error = polled.error();
      membership->leave_group(error->message, sync::membership::Ends::nothing);  // as an ending device does
      view.reset();
    } else if (polled.value()) {
      view = polled.value();
      // As when it connects: every member writes a record.
      if (view->world() > 1) static_cast<void>(membership->set(view->token, "address of " + id(), {}));
    }
  }
};

/// The time of the group, which is also that of its log.
struct GroupClock final : Clock {
  explicit GroupClock(const TimePoint& time) : time_(time) {}
  [[nodiscard]] TimePoint now() const noexcept override { return time_; }
  const TimePoint& time_;
};

/// A group over one log (in memory unless `open` overrides it), advanced by the test.
struct MembershipGroup {
  sync::membership::MemoryLog log;
  TimePoint now{};
  GroupClock clock{now};
  std::function<std::unique_ptr<OrderedLog>()> open = [this] { return log.open(&clock); };
  std::uint64_t seed = 1;
  std::map<std::string, MembershipNode> nodes;

  sync::membership::MembershipConfig config(const std::string& id, const GroupSizes& devices,
                                            const std::string& tick = "100ms") {
    sync::membership::MembershipConfig c;
    c.job = "mnist";
    c.hello.device = id;
    c.hello.host = "host-" + id;
    c.hello.pid = 100;
    c.hello.devices = devices;
    c.hello.config = {{"batch.tick", tick}, {"job.devices", std::to_string(devices.max)}};
    c.hello.config_hash = tick + std::to_string(devices.max);
    c.hello.partitions = {"mnist:" + id};
    c.nonce_seed = ++seed;
    return c;
  }
  void start(const sync::membership::MembershipConfig& c, const std::string& as = "") {
    MembershipNode node;
    node.config = c;
    node.log = open();
    node.membership = sync::membership::make_membership(c, *node.log);
    nodes[as.empty() ? c.hello.device : as] = std::move(node);
  }
  void start(const std::string& id, const GroupSizes& devices, const std::string& tick = "100ms") {
    start(config(id, devices, tick));
  }
  /// Starts all of them and forms one view.
  void form(const std::vector<std::string>& ids) {
    for (const auto& id : ids) start(id, static_cast<std::uint32_t>(ids.size()));
    run(std::chrono::milliseconds(300));
    REQUIRE(formed(ids));
  }
  void kill_all() { nodes.clear(); }
  void step(TimePoint time) {
    for (auto& entry : nodes) entry.second.step(time);
  }
  void run(Duration time) {
    for (const TimePoint end = now + time; now < end; now += std::chrono::milliseconds(10)) step(now);
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

inline const std::vector<std::string> abcd{"a", "b", "c", "d"};

}  // namespace rivulet::testing
