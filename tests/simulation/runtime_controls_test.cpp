// Negative controls of gates: their behaviour on pure noise.
#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <functional>

#include "core/rng.h"
#include "sync/coding/gains.h"
#include "tests/support/group_run.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

/// For normal variates, the part of the squared norm in the largest share `keep`: keep + 2 z phi(z), where
/// half of that share exceeds z.
double energy_of_normal(double keep) {
  double low = 0;
  double high = 10;
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) > keep ? low : high) = middle;
  }
  return keep + 2 * low * std::exp(-low * low / 2) / std::sqrt(2 * M_PI);
}

LoadedConfig gate_job(const std::string& policy, const std::string& gain, std::uint32_t devices) {
  auto job = linear_job(devices);
  auto& c = job.config;
  c.batch.policy = "fixed";
  c.batch.rows = 16;
  c.compression.policy = policy;
  const std::string keys = policy == "gravac" ? "compression.gravac." : "compression.two_point.";
  c.settings.set(keys + "gain", gain);
  c.settings.set(keys + "half_life", 10.0);
  c.settings.set("compression.two_point.keep", 0.1);
  c.settings.set("compression.two_point.delta", 0.3);
  c.settings.set("compression.gravac.epsilon", 0.7);
  c.settings.set("compression.gravac.omega", 0.01);
  c.settings.set("compression.gravac.window", std::int64_t{50});
  c.settings.set("compression.topk.values", std::string("f32"));
  c.settings.set("compression.topk.per_tensor", false);
  return job;
}

LoadedConfig noise_job(const std::string& gain, double keep, double delta) {
  auto job = gate_job("two-point", gain, 2);
  job.config.model.name = "gaussian";
  job.config.model.classes = 1000;  // 9000 parameters
  job.config.settings.set("compression.two_point.keep", keep);
  job.config.settings.set("compression.two_point.delta", delta);
  job.config.settings.set("train.optimizer.momentum", 0.0);
  return job;
}

struct BothGains {
  double squared = 0;    ///< of gradient and residual
  double unsquared = 0;  ///< of the gradient alone
};

/// Gains reported in the n-th synchronization and the few after it.
BothGains gains_at(const std::vector<RecordedRound>& rounds, double keep, std::size_t n) {
  const auto place =
      static_cast<std::size_t>(std::ranges::find(sync::gain_keeps, keep) - sync::gain_keeps.begin());
  constexpr std::size_t shares = sync::gain_keeps.size();
  BothGains sum;
  double count = 0;
  std::size_t agreements = 0;
  for (const RecordedRound& round : rounds) {
    if (round.plan.now.mode != sync::policy::Mode::gradients) continue;
    ++agreements;
    if (agreements < n || agreements > n + n / 10) continue;
    for (const auto& facts : round.table.facts) {
      const double share = facts.measurements.at(place);
      sum.squared += share;
      sum.unsquared +=
          std::sqrt(share) * double{facts.measurements.at(shares)} / facts.measurements.at(shares + 1);
      ++count;
    }
  }
  REQUIRE(count > 0);
  return {sum.squared / count, sum.unsquared / count};
}

using MakeRow = std::function<std::vector<std::byte>(std::size_t device, std::size_t index)>;

std::vector<std::byte> bytes_of(std::span<const float> row) {
  const auto bytes = std::as_bytes(row);
  return {bytes.begin(), bytes.end()};
}

std::vector<RecordedRound> run_on(const LoadedConfig& job, std::uint64_t rounds, const MakeRow& make) {
  const PartsCatalog parts;
  SimulatedParts outside;
  outside.catalog = parts.catalog();
  outside.source = [&](std::size_t device, const Clock& clock) {
    return prepared_source(
        device, 16 * rounds + 64, [&, device](std::size_t i) { return make(device, i); }, clock);
  };
  std::vector<RecordedRound> recorded;
  outside.decisions = [&](std::size_t device) -> std::unique_ptr<DecisionLog> {
    if (device == 0) return std::make_unique<RecordingDecisions>(recorded);
    return make_null_decision_log();
  };
  auto group = build_group(job, fast(rounds), std::move(outside));
  run_to_end(*group);
  CHECK(group->node(0).state().stamp.step == rounds);
  return recorded;
}

/// Each batch has other noise.
std::vector<RecordedRound> run_noise(const LoadedConfig& job, std::uint64_t rounds) {
  return run_on(job, rounds, [](std::size_t device, std::size_t i) {
    return bytes_of(std::array<float, 9>{0, static_cast<float>(device), static_cast<float>(i)});
  });
}

constexpr std::size_t columns = 64;

/// Learnable rows of a linear model, or the same with random labels. Most features are small, as in images
/// with mostly dark pixels.
MakeRow rows_with(bool own_labels) {
  return [=](std::size_t device, std::size_t i) {
    Rng rng = Rng::derive(7, "rows", 100'000 * device + i);
    std::array<float, 1 + columns> row{};
    for (std::size_t k = 1; k <= columns; ++k)
      row.at(k) = static_cast<float>(rng.normal() * (k <= 6 ? 1 : 0.1));
    const auto quarter = [&](std::size_t first) { return row.at(first) > 0 ? 1U : 0U; };
    const std::uint64_t label = quarter(1) + 2 * quarter(2);
    row[0] = static_cast<float>(own_labels ? label : rng.below(4));
    return bytes_of(row);
  };
}

LoadedConfig labels_job(const std::string& policy, const std::string& gain) {
  auto job = gate_job(policy, gain, 3);
  job.config.decode.shape = {columns};
  job.config.settings.set("compression.gravac.window", std::int64_t{20});
  return job;
}

/// Of the rows of the last third of the rounds.
double accuracy(const std::vector<RecordedRound>& rounds) {
  double correct = 0;
  double rows = 0;
  for (std::size_t i = 2 * rounds.size() / 3; i < rounds.size(); ++i)
    for (const auto& facts : rounds[i].table.facts) {
      correct += static_cast<double>(facts.correct);
      rows += facts.rows;
    }
  return correct / rows;
}

/// Share of the rounds with an exchange that sent topk.
double compressed_share(const std::vector<RecordedRound>& rounds) {
  double compressed = 0;
  double all = 0;
  for (const RecordedRound& round : rounds) {
    if (!round.plan.now.way) continue;
    ++all;
    compressed += round.plan.now.way.value().compressor == "topk" ? 1 : 0;
  }
  return compressed / all;
}

}  // namespace

TEST_CASE("Control: the part of normal numbers' energy in the largest of them, as the law has it") {
  CHECK(energy_of_normal(0.1) == doctest::Approx(0.439).epsilon(0.002));
  CHECK(energy_of_normal(0.01) == doctest::Approx(0.0845).epsilon(0.002));
  CHECK(energy_of_normal(0.001) == doctest::Approx(0.0127).epsilon(0.005));
}

TEST_CASE(
    "Control: on noise the gain of the papers stays where the law has it, and that of their code climbs to "
    "1 in as many rounds as the share leaves out") {
  for (const double keep : {0.1, 0.01, 0.001}) {
    CAPTURE(keep);
    const std::uint64_t length = keep < 0.01 ? 1500 : keep < 0.1 ? 330 : 60;
    const auto rounds = run_noise(noise_job("squared", keep, 10), length);  // always open: residuals grow
    CHECK(compressed_share(rounds) == 1);
    const double law = energy_of_normal(keep);
    const BothGains first = gains_at(rounds, keep, 1);
    CHECK(first.squared == doctest::Approx(law).epsilon(keep < 0.01 ? 0.15 : 0.05));
    CHECK(first.unsquared == doctest::Approx(std::sqrt(law)).epsilon(keep < 0.01 ? 0.08 : 0.03));
    const auto filled = static_cast<std::size_t>(keep == 0.001 ? 1300 : 3 / keep);
    const BothGains last = gains_at(rounds, keep, filled);
    CHECK(last.squared < law);
    CHECK(last.squared > 0.4 * law);
    CHECK(last.unsquared == doctest::Approx(1).epsilon(0.1));
  }
}

TEST_CASE("Control: on noise both gains go through the rounds as error feedback has it") {
  const auto tenth = run_noise(noise_job("squared", 0.1, 10), 60);
  const auto hundredth = run_noise(noise_job("squared", 0.01, 10), 230);
  struct Row {
    std::size_t round;
    double squared;
    double raw;  ///< square of the other one
  };
  for (const Row& row : {Row{1, 0.43, 0.43}, Row{10, 0.42, 0.99}, Row{50, 0.42, 1.04}}) {
    CAPTURE(row.round);
    const BothGains gains = gains_at(tenth, 0.1, row.round);
    CHECK(gains.squared == doctest::Approx(row.squared).epsilon(0.05));
    CHECK(gains.unsquared * gains.unsquared == doctest::Approx(row.raw).epsilon(0.06));
  }
  for (const Row& row : {Row{1, 0.09, 0.09}, Row{10, 0.07, 0.48}, Row{50, 0.06, 0.98}, Row{200, 0.06, 1.0}}) {
    CAPTURE(row.round);
    const BothGains gains = gains_at(hundredth, 0.01, row.round);
    CHECK(gains.squared == doctest::Approx(row.squared).epsilon(0.1));
    CHECK(gains.unsquared * gains.unsquared == doctest::Approx(row.raw).epsilon(0.1));
  }
}

TEST_CASE("Control: a gate of the papers stays shut on noise; one of their code that has opened stays open") {
  // A tenth has 0.44 of the squared norm, 0.66 of the norm.
  CHECK(compressed_share(run_noise(noise_job("squared", 0.1, 0.4), 60)) == 0);
  CHECK(compressed_share(run_noise(noise_job("unsquared", 0.1, 0.4), 60)) == 1);
  // A dense exchange includes the residual: a closed gate does not open over time.
  CHECK(compressed_share(run_noise(noise_job("unsquared", 0.1, 0.3), 60)) == 0);
}

TEST_CASE(
    "Control: gates open where labels mean nothing, too: a gain does not see whether there is anything to "
    "learn") {
  for (const char* policy : {"two-point", "gravac"})
    for (const char* gain : {"squared", "unsquared"}) {
      INFO(policy, " ", gain);
      const auto learns = run_on(labels_job(policy, gain), 300, rows_with(true));
      const auto drawn = run_on(labels_job(policy, gain), 300, rows_with(false));
      CHECK(accuracy(learns) > 0.7);
      CHECK(accuracy(drawn) < 0.3);
      CHECK(compressed_share(learns) > 0.9);
      CHECK(compressed_share(drawn) > 0.9);
    }
}
