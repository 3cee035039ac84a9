// Devices that announce rows they cannot have used: all reject them before anything is applied.
#include <doctest/doctest.h>

#include "stream/open.h"
#include "tests/conformance/walls_suite.h"
#include "tests/support/wrapped_source.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

/// A group of three on linear rows; device 1 has a different source.
std::unique_ptr<runtime::SimulatedGroup> group_with(
    const std::function<std::unique_ptr<stream::RecordSource>(const runtime::Config&, const Clock&)>&
        source) {
  auto run = even_run(8, 20);
  static const PartsCatalog parts;
  runtime::SimulatedParts outside;
  outside.catalog = parts.catalog();
  outside.source = [&](std::size_t device, const Clock& clock) {
    return device == 1 ? source(run.loaded.config, clock)
                       : linear_source(run.loaded.config, device, 4000, clock);
  };
  runtime::SimulateOptions options;
  options.stop_after = run.stop_after;
  auto group = build_group(run.loaded, options, std::move(outside));
  group->run_until([&] { return group->seconds() > 100; });
  return group;
}

void check_refused(runtime::SimulatedGroup& group, const std::string& why, std::uint64_t steps) {
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto& error = group.node(i).worker().ending().error;
    REQUIRE(error);
    INFO(error->message);
    CHECK((error->code == ErrorCode::protocol || error->code == ErrorCode::peer_lost));
    CHECK(group.node(i).state().stamp.step == steps);
  }
  bool said = false;  // by one device or more: the others may only see a lost peer
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto& error = group.node(i).worker().ending().error;
    said = said ||
           (error->code == ErrorCode::protocol && error->message.find("device-02") != std::string::npos &&
            error->message.find(why) != std::string::npos);
  }
  CHECK(said);
  CHECK(group.summary().parameters_equal);
}

/// Also reads partition 0, which belongs to device 0, despite its assignment.
struct Stray final : testing::WrappedSource {
  using WrappedSource::WrappedSource;
  Status assign(const Assignment& to) override { return inner->assign({to.generation, {{{0, 0}, {}}}}); }
};

}  // namespace

TEST_CASE("Intervals: rows of a partition that is another device's are refused") {
  const auto group = group_with([](const runtime::Config& config, const Clock& clock) {
    return std::make_unique<Stray>(linear_source(config, 0, 4000, clock));
  });
  check_refused(*group, "announced twice", 0);  // its owner has rows of it in the same round
}

TEST_CASE("Intervals: a source that hands out offsets twice ends its device, before anybody is told") {
  const auto group = group_with([](const runtime::Config& config, const Clock& clock) {
    std::vector<stream::ScriptedRecord> script;
    for (std::int64_t i = 0; i < 400; ++i)
      script.push_back(
          {TimePoint{}, {0, 1}, i < 100 ? i : i - 1, linear_row(config.job.seed, 1, 0, 8, 4), false});
    return stream::open_scripted_source({PartitionId{0, 1}}, std::move(script), clock);
  });
  const auto& error = group->node(1).worker().ending().error;
  REQUIRE(error);
  CHECK(error->message == "partition 1: expected the next row at 100, got one at 99");
  CHECK(group->node(0).state().partitions.at({0, 1}).next.offset <= 100);
  CHECK(group->summary().parameters_equal);
}
