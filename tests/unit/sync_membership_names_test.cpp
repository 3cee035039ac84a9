// Hints of a device that waits alone because of its own name or disk.
#include <doctest/doctest.h>

#include "tests/support/membership_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;
using Group = rivulet::testing::MembershipGroup;

namespace {

/// A log in a broker with logs of other jobs.
class LogAmongOthers final : public OrderedLog {
 public:
  explicit LogAmongOthers(std::unique_ptr<OrderedLog> log) : log_(std::move(log)) {}
  Status append(std::span<const std::byte> bytes) override { return log_->append(bytes); }
  Result<std::span<const LogEntry>> poll(std::size_t most) override { return log_->poll(most); }
  [[nodiscard]] bool caught_up() const override { return log_->caught_up(); }
  [[nodiscard]] std::vector<std::string> other_jobs() const override { return {"mnits", "pumps"}; }

 private:
  std::unique_ptr<OrderedLog> log_;
};

std::string last_waited_for(const Group& g, const std::string& id) {
  const auto names = g.nodes.at(id).membership->waiting_for();
  return names.empty() ? "" : names.back();
}

}  // namespace

TEST_CASE("Membership: who waits alone is told of a job whose name is nearly its own") {
  Group g;
  g.open = [&g] { return std::make_unique<LogAmongOthers>(g.log.open()); };
  g.start("a", 2);
  g.run(100ms);
  CHECK(last_waited_for(g, "a") ==
        "or for a correction: job.name is 'mnist' here, and this broker also has job 'mnits'");
  g.start("c", 3);  // another device has the same name: it is correct
  g.run(100ms);
  CHECK(last_waited_for(g, "a").find("job.name") == std::string::npos);
}

TEST_CASE("Membership: where nobody has the saved state, what this device could not use comes first") {
  Group g;
  g.form({"a"});
  REQUIRE(
      g.nodes.at("a").membership->post_saved({g.nodes.at("a").view->number, 40}, "d", std::string(64, '0')));
  g.run(300ms);
  g.kill_all();
  auto again = g.config("a", 1);
  again.hello.config_hash = "100ms1";
  again.unusable = "/data/checkpoints/1.40.ckpt: section 3 is damaged";
  g.start(again);
  g.run(10s);
  const auto& error = g.nodes.at("a").error;
  REQUIRE(error);
  CHECK(error->code == ErrorCode::invalid_config);
  CHECK(
      error->message.starts_with("/data/checkpoints/1.40.ckpt: section 3 is damaged; the group's "
                                 "saved state (1.40) is on none of a"));
}
