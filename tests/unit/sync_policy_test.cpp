#include "sync/policy/arbiter.h"

#include <doctest/doctest.h>

#include <numeric>

#include "runtime/config/config.h"
#include "tests/support/members.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;

namespace {

FactsTable table_of(std::vector<Facts> facts) {
  FactsTable table;
  table.facts = std::move(facts);
  table.sections.resize(table.facts.size());
  for (std::uint32_t i = 0; i < table.facts.size(); ++i) {
    table.facts[i].rank = i;
    if (table.facts[i].rows_max == 0) table.facts[i].rows_max = 1024;
  }
  return table;
}

Facts with(std::uint32_t rows, double rate = 0, std::uint64_t queue = 0, std::uint32_t flags = 0) {
  Facts f;
  f.rows = rows;
  f.stream_rate = rate;
  f.queue_rows = queue;
  f.flags = flags;
  return f;
}

Controllers controllers(std::string_view name, PolicyConfig config = {}) {
  config.batch_policy = name;
  return controllers_of(config, builtin_controllers()).value();
}

RoundPlan once(const FactsTable& table, std::string_view name, PolicyConfig config = {}) {
  PolicyState state;
  return plan(table, config, controllers(name, config), state);
}

}  // namespace

TEST_CASE("Policy stream: b = S * T, and what waits counts") {
  struct Case {
    double rate;
    std::uint64_t queue;
    double compute;
    std::uint32_t expected;
  };
  for (const auto& c : {Case{800, 0, 0, 80}, Case{400, 0, 0, 40}, Case{100, 0, 0, 10}, Case{800, 25, 0, 105},
                        Case{800, 0, 0.05, 40}, Case{800, 30, 0.5, 30}, Case{0, 0, 0, 0}, Case{0, 7, 0, 7},
                        Case{100'000, 0, 0, 1024}}) {
    Facts f = with(10, c.rate, c.queue);
    f.compute_seconds = c.compute;
    const auto p = once(table_of({f, with(10, 1000)}), "stream");
    INFO(c.rate, " rows/s, ", c.queue, " waiting, compute ", c.compute);
    CHECK(p.next.rows[0] == c.expected);
  }
}

TEST_CASE("Policy: without a reduction asked for, few or small payloads are gathered and large ones summed") {
  PolicyConfig config;
  config.collective = "auto";
  const auto chosen = [&](std::size_t world, std::uint64_t payload) {
    config.contribution_bytes = payload;
    return once(FactsTable(table_of(std::vector<Facts>(world, with(1, 100)))), "stream", config)
        .next.way.collective;
  };
  CHECK(chosen(1, 1 << 30) == "gather");
  CHECK(chosen(2, 1 << 30) == "gather");  // sum would send as many bytes, in as many phases
  CHECK(chosen(4, 4096) == "gather");
  CHECK(chosen(4, 250'000) == "sum");  // LeNet-5
  CHECK(chosen(16, 250'000) == "sum");
}

TEST_CASE("Policy stream: bounds hold; a minimum out of reach is not waited for") {
  PolicyConfig config;
  config.min = 8;
  config.max = 64;
  CHECK(once(table_of({with(1, 10'000)}), "stream", config).next.rows[0] == 64);
  CHECK(once(table_of({with(1, 60)}), "stream", config).next.rows[0] == 8);  // 6 expected, 12 within max_wait
  CHECK(once(table_of({with(1, 20)}), "stream", config).next.rows[0] == 0);  // 8 would take 0.4 s
  Facts small = with(1, 10'000);
  small.rows_max = 20;
  CHECK(once(table_of({small}), "stream", config).next.rows[0] == 20);
}

TEST_CASE("Arbiter: weights are rows over all rows and sum to one; zero rows weigh nothing") {
  const auto p = once(table_of({with(30, 1), with(0, 1), with(10, 1)}), "stream");
  CHECK(p.now.mode == Mode::gradients);
  CHECK(p.now.weights == std::vector<double>{0.75, 0.0, 0.25});
  CHECK(std::accumulate(p.now.weights.begin(), p.now.weights.end(), 0.0) == doctest::Approx(1.0));
}

TEST_CASE("Arbiter: when nobody has rows nothing happens, and waiting doubles up to a second") {
  PolicyState state;
  const PolicyConfig config;
  std::vector<double> waits;
  for (int i = 0; i < 6; ++i) {
    const auto p = plan(table_of({with(0), with(0)}), config, controllers("stream"), state);
    CHECK(p.now.mode == Mode::idle);
    CHECK(p.next.rest);
    waits.push_back(to_seconds(p.next.wait));
  }
  CHECK(waits == std::vector<double>{0.2, 0.4, 0.8, 1.0, 1.0, 1.0});
  static_cast<void>(plan(table_of({with(5, 100), with(0)}), config, controllers("stream"), state));
  CHECK(to_seconds(plan(table_of({with(0), with(0)}), config, controllers("stream"), state).next.wait) ==
        doctest::Approx(0.2));
}

TEST_CASE("Arbiter: a view begins short, until it has agreed on rows") {
  PolicyConfig config;
  config.sync_policy = "periodic";
  Settings settings;
  settings.set("sync.local_steps", std::int64_t{10});
  settings.set("sync.own_time", Duration(0));
  settings.set("sync.overlap", std::string("never"));
  config.settings = settings_of(config, settings);
  const Controllers all = controllers_of(config, builtin_controllers()).value();
  PolicyState state = first_state(testing::members(2), config, all, {});
  const auto local_steps_after = [&](std::uint32_t rows) {
    return plan(table_of({with(rows, 10), with(0, 10)}), config, all, state).next.steps();
  };
  CHECK(state.last.next.steps() == 1);
  CHECK(local_steps_after(0) == 1);
  CHECK(local_steps_after(0) == 1);
  const std::uint32_t usual = local_steps_after(3);
  CHECK(usual > 1);
  CHECK(local_steps_after(0) == usual);
}

TEST_CASE("Policy fixed: everybody brings the same rows, and all hold until all have them") {
  PolicyConfig config;
  config.rows = 64;
  const auto full = once(table_of({with(64), with(64)}), "fixed", config);
  CHECK(full.now.mode == Mode::gradients);
  CHECK(full.next.rows == std::vector<std::uint32_t>{64, 64});
  CHECK(full.next.whole);
  const auto waiting = once(table_of({with(64), with(0, 5, 12, flag_incomplete)}), "fixed", config);
  CHECK(waiting.now.mode == Mode::defer);
}

TEST_CASE("Arbiter: stop, leave and limits come out of the table alone") {
  CHECK(once(table_of({with(1), with(1, 0, 0, flag_stop)}), "stream").now.stop);
  CHECK(once(table_of({with(1), with(1, 0, 0, flag_leaving)}), "stream").now.leaving ==
        std::vector<std::uint32_t>{1});
  Facts limited = with(5);
  limited.step = 9;
  limited.stop_at_step = 10;
  CHECK(once(table_of({limited, with(5)}), "stream").now.stop);
  limited.stop_at_step = 11;
  CHECK_FALSE(once(table_of({limited, with(5)}), "stream").now.stop);
  limited.stop_at_step = 0;
  limited.agreed_rows = 90;
  limited.stop_at_rows = 100;
  CHECK(once(table_of({limited, with(5)}), "stream").now.stop);
  CHECK_FALSE(once(table_of({limited, with(4)}), "stream").now.stop);
}

TEST_CASE(
    "Arbiter: a checkpoint is taken when one asks in a round that applies, or in one where nobody has rows") {
  CHECK_FALSE(once(table_of({with(8), with(8)}), "stream").now.checkpoint);
  CHECK(once(table_of({with(8), with(8, 0, 0, flag_checkpoint)}), "stream").now.checkpoint);
  CHECK(once(table_of({with(0), with(0, 0, 0, flag_checkpoint)}), "stream").now.checkpoint);
  CHECK_FALSE(once(table_of({with(0), with(0)}), "stream").now.checkpoint);
}

TEST_CASE("Arbiter: what is remembered of a device goes with it into a view of other members") {
  PolicyConfig config;
  config.transfer_policy = "auto";
  config.settings = settings_of(config, runtime::Config::default_settings());
  const Controllers all = controllers_of(config, builtin_controllers()).value();
  const ControllerEntry* transfer = all[2];
  REQUIRE(transfer->memory_per_rank > 0);
  const auto memory_in = [&](const PolicyState& state) {
    return *std::ranges::find(state.memory, "transfer/auto", &ControllerMemory::name);
  };
  const std::vector<std::string> before{"a", "b", "c"}, after{"b", "c", "d", "e"};
  PolicyState state = first_state(before, config, all);
  for (ControllerMemory& own : state.memory)
    for (double n = 1; double& value : own.values) value = n++;
  const ControllerMemory old = memory_in(state);
  CHECK(old.devices == before);
  const ControllerMemory now = memory_in(first_state(after, config, all, state.memory));
  CHECK(now.devices == after);
  const auto part = [&](const ControllerMemory& own, std::size_t rank) {
    const auto at =
        own.values.begin() + static_cast<std::ptrdiff_t>(transfer->memory + rank * transfer->memory_per_rank);
    return std::vector<double>(at, at + static_cast<std::ptrdiff_t>(transfer->memory_per_rank));
  };
  CHECK(std::equal(now.values.begin(), now.values.begin() + static_cast<std::ptrdiff_t>(transfer->memory),
                   old.values.begin()));
  CHECK(part(now, 0) == part(old, 1));
  CHECK(part(now, 1) == part(old, 2));
  CHECK(part(now, 2) == std::vector<double>(transfer->memory_per_rank));
  CHECK(part(now, 3) == std::vector<double>(transfer->memory_per_rank));
  CHECK(memory_in(first_state(before, config, all, state.memory)) == old);

  state.memory.front().name = "transfer/auto";  // of another version, with other values
  state.memory.front().values.pop_back();
  std::ranges::swap(state.memory.front(), state.memory.back());
  std::erase_if(state.memory, [&](const ControllerMemory& own) { return own == old; });
  const ControllerMemory fresh = memory_in(first_state(before, config, all, state.memory));
  CHECK(std::ranges::all_of(fresh.values, [](double value) { return value == 0; }));
}

TEST_CASE("Arbiter: pure: the same table and state give the same plan and hash; another table another hash") {
  const auto table = table_of({with(3, 50, 2), with(9, 700, 1)});
  const auto a = once(table, "stream");
  const auto b = once(table, "stream");
  CHECK(a == b);
  CHECK(hash_of(a, 1) == hash_of(b, 1));
  CHECK(hash_of(a, 1) != hash_of(b, 2));
  CHECK(hash_of(a, 1) != hash_of(once(table_of({with(3, 50, 2), with(8, 700, 1)}), "stream"), 1));
}

TEST_CASE("Digest: agreement is silence, a majority names the minority, a tie names both") {
  const std::vector<std::string> ids{"a", "b", "c"};
  const auto digest = [](std::uint64_t d) {
    Facts f;
    f.flags = flag_digest;
    f.digest = {d, d};
    return f;
  };
  CHECK(digest_disagreement(table_of({digest(1), digest(1), digest(1)}), ids).text.empty());
  CHECK(digest_disagreement(table_of({with(1), with(2)}), ids).text.empty());
  const auto minority = digest_disagreement(table_of({digest(1), digest(2), digest(1)}), ids);
  CHECK(minority.text.find(" b holds ") != std::string::npos);
  CHECK(minority.text.find(" a holds ") == std::string::npos);
  CHECK(minority.minority == std::vector<std::uint32_t>{1});
  const auto tie = digest_disagreement(table_of({digest(1), digest(2)}), ids);
  CHECK(tie.text.find(" a holds ") != std::string::npos);
  CHECK(tie.text.find(" b holds ") != std::string::npos);
  CHECK(tie.minority.empty());
}

TEST_CASE("Leaving: a group that goes on first exchanges everything, if that fits the time") {
  PolicyConfig config;
  config.changes_size = true;
  config.contribution_bytes = 1000;
  const auto plans = [&](std::uint32_t flags, float sync_seconds, bool all = false, float waited = 0) {
    const auto chosen = controllers("stream");
    PolicyState state = first_state(testing::members(2), config, chosen, {});
    Facts stays = with(5, 100);
    Facts leaves = with(5, 100);
    stays.flags = all ? flags : 0;
    leaves.flags = flags;
    leaves.sync_seconds = sync_seconds;
    stays.sync_seconds = sync_seconds + waited;
    const FactsTable table = table_of({stays, leaves});
    const RoundPlan first = plan(table, config, chosen, state);
    return std::pair(first, plan(table, config, chosen, state));
  };
  const auto [first, second] = plans(flag_leaving | flag_residual, 0.1F);
  CHECK(first.now.leaving.empty());
  CHECK(first.next.flush);
  CHECK(first.next.way.compressor == "dense");
  CHECK(plans(flag_leaving | flag_residual, 0.1F, false, 1e6F).first.next.flush);  // it waited for the other
  CHECK(second.now.leaving == std::vector<std::uint32_t>{1});
  CHECK_FALSE(second.next.flush);
  for (const auto& none : {plans(flag_leaving, 0.1F), plans(flag_leaving | flag_residual, 1e6F),
                           plans(flag_leaving | flag_residual, 0.1F, true)}) {
    CHECK_FALSE(none.first.next.flush);
    CHECK_FALSE(none.first.now.leaving.empty());
  }
  config.changes_size = false;  // the others wait for it: it resumes with its residual
  CHECK(plans(flag_leaving | flag_residual, 0.1F).first.now.leaving == std::vector<std::uint32_t>{1});
}
