// Lines of the decision log: from values to text and back.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/digest.h"
#include "core/rng.h"
#include "runtime/decisions/decision_log.h"
#include "runtime/decisions/plan_replay.h"
#include "runtime/decisions/round_explanation.h"
#include "tests/support/drawn_decisions.h"
#include "tests/support/effort.h"
#include "tests/support/places.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
using Json = nlohmann::json;

TEST_CASE("Decision log: every field comes back with every bit, at its extremes, too") {
  constexpr auto big = std::numeric_limits<std::uint64_t>::max();
  constexpr auto medium = std::numeric_limits<std::uint32_t>::max();
  const double numbers[] = {
      0.0, -0.0, 0.1, 1e-310, 5e-324, 1.7976931348623157e308, 1.0 / 3, 1e22, 123456789.123456789};
  for (const double number : numbers) {
    CAPTURE(number);
    RoundRecord r;
    r.view = r.round = r.plan_hash = big;
    sync::Facts f;
    f.step = f.agreed_rows = f.stop_at_step = f.stop_at_rows = f.correct = f.rows_dropped = f.plan_hash = big;
    f.round = big;
    f.rows = f.flags = f.queue_rows = f.rows_max = medium;
    constexpr double most = std::numeric_limits<float>::max();
    f.stream_rate = f.compute_seconds = f.wait_seconds = f.sync_seconds =
        static_cast<float>(std::min(std::abs(number), most));
    f.loss_sum = f.gradient_norm2 = number;
    f.digest = {0x0123456789abcdef, big};
    f.interval = {{medium, std::numeric_limits<std::int32_t>::min()},
                  {std::numeric_limits<std::int64_t>::max(), medium},
                  {std::numeric_limits<std::int64_t>::min(), medium},
                  medium,
                  medium,
                  medium,
                  big};
    sync::FactsSection section;
    section.more_intervals = {f.interval, {}};
    section.runs = {{f.interval.partition, f.interval.first, f.interval.next, big, fate_hole}};
    r.table.facts = {f};
    r.table.sections = {section};
    r.plan.now.mode = sync::policy::Mode::delta;
    r.plan.next.way.compressor = "sum";
    r.plan.next.way.collective = "\"quoted\", \u00e4\n";
    r.plan.next.way.keep_ratio = r.plan.now.learning_rate_factor = -number;
    r.plan.now.weights = {number, number / 3};
    r.plan.next.way.payload_bytes = big;
    r.plan.next.rows = {medium, 0};
    r.plan.next.wait = Duration::max();
    r.plan.next.whole = r.plan.next.rest = r.plan.next.freeze = r.plan.now.checkpoint = r.plan.now.stop =
        true;
    r.plan.now.leaving = {0, medium};
    const auto again = round_in(decision_line(r));
    CHECK(again.table.facts == r.table.facts);
    CHECK(again.table.sections == r.table.sections);
    CHECK(again.plan == r.plan);
    CHECK(again.view == r.view);
    CHECK(again.round == r.round);
    CHECK(again.plan_hash == r.plan_hash);
    CHECK(std::signbit(again.table.facts[0].loss_sum) == std::signbit(number));
  }
  RoundRecord r;
  r.table.facts.resize(2);
  r.table.sections.resize(2);
  r.table.facts[0].loss_sum = std::numeric_limits<double>::quiet_NaN();
  r.table.facts[1].loss_sum = -std::numeric_limits<double>::infinity();
  r.table.facts[1].gradient_norm2 = std::numeric_limits<double>::infinity();
  r.table.facts[1].rank = 1;
  auto again = round_in(decision_line(r));
  CHECK(std::isnan(again.table.facts[0].loss_sum));
  CHECK(again.table.facts[1] == r.table.facts[1]);
  r.table.facts[1].stream_rate = std::numeric_limits<double>::infinity();  // devices reject this
  CHECK(contains(parse_decision_line(decision_line(r)).error().message, "negative or not finite"));
}

TEST_CASE("Decision log: whatever is read of a broken line is, byte for byte, what would have been written") {
  Rng rng(seed_or(11));
  ViewRecord view = view_of_three(1);
  const auto table = drawn_table(rng, 3);
  view.state.memory = {{"ratchet", {0.5, -3}}};
  auto plan = sync::policy::plan(table, view.policy, stream_controllers(), view.state);
  const std::string whole[] = {decision_line(view), decision_line(1, 0, table, plan)};
  int read = 0;
  for (int i = 0; i < repetitions(4'000, 400'000); ++i) {
    std::string line = whole[rng.below(2)];
    for (std::uint64_t n = 1 + rng.below(3); n > 0 && !line.empty(); --n) {
      const std::size_t at = rng.below(line.size());
      const std::size_t from = rng.below(line.size());
      switch (rng.below(4)) {
        case 0: line[at] = "0123456789-.eE\"{}[],:truefalsn"[rng.below(31)]; break;
        case 1: line.erase(at, rng.below(20)); break;
        case 2: line.insert(at, line.substr(from, rng.below(30))); break;
        default: line[at] = static_cast<char>(rng.below(256));
      }
    }
    const std::string sealed = rng.below(8) == 0 ? line : resealed(line, "", "");
    const auto record = parse_decision_line(sealed);
    if (!record) {
      CHECK(record.error().code == ErrorCode::bad_record);
      continue;
    }
    ++read;
    const auto* as_view = std::get_if<ViewRecord>(&record.value());
    CHECK(sealed == (as_view != nullptr ? decision_line(*as_view)
                                        : decision_line(std::get<RoundRecord>(record.value()))));
    PlanReplay replay(sync::policy::builtin_controllers());
    static_cast<void>(replay.take(parse_decision_line(whole[0]).value()));
    static_cast<void>(replay.take(record.value()));
  }
  CHECK(read > 0);
}

TEST_CASE("Decision log: lines that say they are older, and are anything, are refused in words") {
  const std::string deep = std::string(300'000, '[') + std::string(300'000, ']');
  for (const std::string& body :
       {"{\"version\":3,\"policy\":" + deep + "}", std::string("{\"version\":3}"),
        std::string("{\"version\":4,\"policy\":{},\"state\":{\"last\":7}}"),
        std::string("{\"version\":3,\"policy\":{},\"state\":{\"last\":[\"codec\"]}}"),
        std::string("{\"facts\":3,\"plan\":{\"codec\":7,\"aggregation\":{}}}"),
        std::string("{\"facts\":[1,{\"interval\":[]}],\"plan\":{\"codec\":\"dense\"}}"),
        std::string("{\"facts\":[],\"plan\":{\"next\":{\"slot_bytes\":-1}}}"),
        "{\"facts\":" + deep + ",\"plan\":{\"codec\":\"dense\"}}"}) {
    const auto record =
        parse_decision_line(resealed(body.substr(0, body.size() - 1) + std::string(26, ' '), "", ""));
    REQUIRE_FALSE(record);
    CHECK(record.error().code == ErrorCode::bad_record);
    CHECK_FALSE(record.error().message.empty());
  }
}
