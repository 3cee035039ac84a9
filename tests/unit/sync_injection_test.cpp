// Injected rows: their bytes, the skew of labels, and their senders.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/rng.h"
#include "sync/coding/rows.h"
#include "sync/controllers/injection.h"
#include "sync/controllers/skew.h"
#include "sync/policy/arbiter.h"
#include "tests/support/members.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;

namespace {

const RowShape shape{{2, 50}, 1};
const RowFormat plain{shape, {}};

/// Rows of pixels, or of any values.
struct Rows {
  Rows(std::size_t n, bool pixels) : rows(n) {
    Rng rng(3);
    for (std::size_t i = 0; i < n * shape.columns(); ++i)
      features.push_back(
          static_cast<float>(pixels ? (rng.uniform() < 0.8 ? 0 : rng.below(256)) / 255.0 : rng.normal()));
    for (std::size_t i = 0; i < n; ++i) targets.push_back(static_cast<float>(rng.below(10)));
  }
  [[nodiscard]] BatchView view() const { return {features, targets, rows, {}}; }
  std::size_t rows;
  std::vector<float> features, targets;
};

std::vector<std::byte> changed(std::vector<std::byte> bytes, std::size_t at, int value) {
  bytes[at] = static_cast<std::byte>(value);
  return bytes;
}

}  // namespace

TEST_CASE("Injection: rows come back to the last bit, pixels in a fraction of their bytes") {
  for (const bool pixels : {true, false}) {
    const Rows rows(20, pixels);
    const auto bytes = encode_rows(rows.view(), plain, 1'000'000);
    const auto back = decode_rows(bytes, plain, 20);
    REQUIRE(back);
    CHECK(back.value().rows == 20);
    CHECK(back.value().features == rows.features);
    CHECK(back.value().targets == rows.targets);
    const double raw = 4.0 * 20 * 101;
    CHECK(static_cast<double>(bytes.size()) < (pixels ? 0.2 : 1.0) * raw);
  }
}

TEST_CASE("Injection: numbers that both sides know are not sent, and others are no harm") {
  RowFormat known = plain;
  for (int byte = 0; byte < 256; ++byte) known.usual.push_back(static_cast<float>(byte / 255.0));
  for (const bool pixels : {true, false}) {
    const Rows rows(3, pixels);
    const auto bytes = encode_rows(rows.view(), known, 100'000);
    const auto back = decode_rows(bytes, known, 3);
    REQUIRE(back);
    CHECK(back.value().features == rows.features);
    if (pixels) CHECK(bytes.size() + 100 < encode_rows(rows.view(), plain, 100'000).size());
    CHECK(static_cast<bool>(decode_rows(bytes, plain, 3)) == !pixels);
  }
  known.usual.resize(100);
  const auto bytes = encode_rows(Rows(3, true).view(), known, 100'000);
  const auto back = decode_rows(bytes, known, 3);
  REQUIRE(back);
  CHECK(back.value().features == Rows(3, true).features);
}

TEST_CASE("Injection: as many rows as fit, or none") {
  const Rows rows(64, false);
  const auto whole = encode_rows(rows.view(), plain, 1'000'000);
  const auto half = encode_rows(rows.view(), plain, whole.size() - 1);
  CHECK(half.size() < whole.size());
  const auto back = decode_rows(half, plain, 64);
  REQUIRE(back);
  CHECK(back.value().rows == 32);
  CHECK(std::equal(back.value().targets.begin(), back.value().targets.end(), rows.targets.begin()));
  CHECK(encode_rows(rows.view(), plain, 10).empty());
  CHECK(encode_rows(Rows(0, false).view(), plain, 1000).empty());
}

TEST_CASE("Injection: bytes that are no rows of this job are refused in words") {
  const Rows rows(4, true);
  const auto bytes = encode_rows(rows.view(), plain, 100'000);
  const auto why = [&](const std::vector<std::byte>& all, const RowShape& of, std::size_t most) {
    const auto decoded = decode_rows(all, {of, {}}, most);
    return decoded ? std::string() : decoded.error().message;
  };
  CHECK(why(bytes, shape, 4).empty());
  CHECK(why({bytes.begin(), bytes.begin() + 7}, shape, 4).find("truncated") != std::string::npos);
  CHECK(why({bytes.begin(), bytes.end() - 1}, shape, 4).find("length") != std::string::npos);
  CHECK(why(bytes, shape, 3).find("too many") != std::string::npos);
  CHECK(why(changed(bytes, 0, 0), shape, 4).find("none") != std::string::npos);
  CHECK(why(changed(bytes, 7, 0x7f), shape, 4).find("longer") != std::string::npos);
  CHECK_FALSE(why(bytes, {{2, 49}, 1}, 4).empty());
  CHECK_FALSE(why(bytes, {{2, 51}, 1}, 4).empty());
  CHECK_FALSE(why(bytes, {{2, 50}, 2}, 4).empty());
  auto longer = bytes;
  longer.push_back({});
  CHECK_FALSE(why(longer, shape, 4).empty());
  Rows infinite(4, false);
  infinite.features[17] = std::numeric_limits<float>::infinity();
  CHECK(why(encode_rows(infinite.view(), plain, 100'000), shape, 4).find("finite") != std::string::npos);
  Rows nameless(4, false);
  nameless.targets[2] = std::numeric_limits<float>::quiet_NaN();
  CHECK(why(encode_rows(nameless.view(), plain, 100'000), shape, 4).find("finite") != std::string::npos);
}

TEST_CASE("Skew: the distance of labels, as its definition has it") {
  std::vector<double> one_label(10 * label_bins);
  for (std::size_t device = 0; device < 10; ++device) one_label[device * label_bins + device] = 600;
  // One label against a tenth of each: ((log2(1 / .55)) + .1 log2(.1 / .55) + .9 log2(.1 / .05)) / 2.
  CHECK(skew_of(one_label) == doctest::Approx(0.8707).epsilon(1e-3));
  std::vector<double> alike(10 * label_bins, 5.0);
  CHECK(skew_of(alike) == doctest::Approx(0).epsilon(1e-9));
  CHECK(skew_of(std::vector<double>(3 * label_bins)) == 0);
  std::vector<double> alone(2 * label_bins);
  alone[3] = 100;
  CHECK(skew_of(alone) == 0);
}

TEST_CASE("Skew: as the library's logarithm has it, of any counts") {
  Rng rng(9);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> counts(4 * label_bins);
    for (double& n : counts) n = rng.uniform() < 0.3 ? 0 : std::floor(100 * rng.uniform());
    const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
    double expected = 0;
    for (std::size_t device = 0; device < 4; ++device) {
      const auto* of = counts.data() + device * label_bins;
      const double rows = std::accumulate(of, of + label_bins, 0.0);
      double js = 0;
      for (std::size_t i = 0; i < label_bins; ++i) {
        double mixed = 0;
        for (std::size_t d = 0; d < 4; ++d) mixed += counts[d * label_bins + i] / all;
        const double own = of[i] / rows;
        const double middle = (own + mixed) / 2;
        if (own > 0) js += own * std::log2(own / middle) / 2;
        if (mixed > 0) js += mixed * std::log2(mixed / middle) / 2;
      }
      expected += rows / all * std::sqrt(js);
    }
    CHECK(skew_of(counts) == doctest::Approx(expected).epsilon(1e-9));
  }
}

namespace {

/// Ten devices with equal rows in N local steps, and a transfer policy.
class Group {
 public:
  explicit Group(const std::string& policy, std::size_t devices = 10) : devices_(devices) {
    config_.batch_policy = "fixed";
    config_.sync_policy = "periodic";
    config_.transfer_policy = policy;
    config_.rows = 20;
    config_.tensors = {60'000};
    config_.contribution_bytes = 240'000;
    set("inject.random.devices", 0.5);
    set("inject.random.share", 0.5);
    set("inject.random.seed", std::int64_t{1});
    set("inject.auto.share", 0.25);
    set("inject.auto.skew", 0.4);
    set("inject.auto.features", 0.5);
    set("sync.local_steps", std::int64_t{10});
    set("sync.own_time", Duration(0));
    set("sync.overlap", std::string("never"));
    table_.facts.resize(devices);
    table_.sections.resize(devices);
    for (std::uint32_t rank = 0; rank < devices; ++rank) {
      table_.facts[rank].rank = rank;
      table_.facts[rank].rows = 200;
      table_.facts[rank].rows_max = 1024;
      table_.facts[rank].flags = flag_local_steps;
    }
  }
  void set(const std::string& key, Settings::Value value) { settings_.set(key, std::move(value)); }
  PolicyConfig& config() { return config_; }
  FactsTable& table() { return table_; }
  /// Labels of each device are its rank, or the same on all.
  void bring(bool one_label) {
    for (std::size_t rank = 0; rank < devices_; ++rank) {
      auto& all = table_.facts[rank].measurements;
      all.assign(label_bins + 2, 0);
      for (std::size_t label = 0; label < 10; ++label)
        all[label] = static_cast<float>(one_label ? (label == rank ? 200 : 0) : 20);
      all[label_bins] = 200 * 785;
    }
  }
  Schedule next() {
    if (controllers_.empty()) {
      config_.settings = settings_of(config_, settings_);
      controllers_ = controllers_of(config_, builtin_controllers()).value();
      state_ = first_state(testing::members(devices_), config_, controllers_);
    }
    return plan(table_, config_, controllers_, state_).next;
  }
  [[nodiscard]] double remembered(std::size_t place) const { return state_.memory.back().values[place]; }

 private:
  std::size_t devices_;
  PolicyConfig config_;
  Settings settings_;
  FactsTable table_;
  Controllers controllers_;
  PolicyState state_;
};

std::size_t senders(const Schedule& next) {
  return static_cast<std::size_t>(
      std::ranges::count_if(next.injection.value_or(Injection{}).rows, [](auto rows) { return rows > 0; }));
}

}  // namespace

TEST_CASE(
    "Injection: by chance, as many devices and rows as the paper says, and batches as large as before") {
  Group group("random");
  std::vector<std::vector<std::uint32_t>> drawn;
  for (std::uint64_t step = 0; step < 20; ++step) {
    for (Facts& f : group.table().facts) f.step = step;
    const Schedule next = group.next();
    CHECK(senders(next) == 5);
    CHECK(next.injected_per_row() == 2.5);                       // alpha beta N
    CHECK(next.rows == std::vector<std::uint32_t>(10, 6));       // 20 / (1 + 2.5), SelSync's equation 3
    CHECK(std::ranges::max(next.injection.value().rows) == 30);  // half of the 6 rows of ten steps
    drawn.push_back(next.injection->rows);
  }
  std::ranges::sort(drawn);
  CHECK(std::ranges::unique(drawn).begin() - drawn.begin() > 15);
}

TEST_CASE("Injection: nobody sends to itself, and nothing is sent where nobody is drawn") {
  Group alone("random", 1);
  CHECK(senders(alone.next()) == 0);
  Group none("random");
  none.set("inject.random.devices", 0.0);
  const Schedule next = none.next();
  CHECK_FALSE(next.injection);
  CHECK(next.injected_per_row() == 0);
  CHECK(next.rows.front() == 20);
}

TEST_CASE("Injection: of itself where labels differ and devices step on their own, and only there") {
  Group skewed("auto");
  skewed.bring(true);
  Schedule next;
  for (int i = 0; i < 3; ++i) next = skewed.next();
  CHECK(skewed.remembered(0) == doctest::Approx(0.8707).epsilon(1e-3));
  CHECK(senders(next) == 10);
  CHECK(next.injected_per_row() == doctest::Approx(1.0 / 3));
  CHECK(next.rows.front() == 15);
  CHECK(next.injected_by(0) == 6);  // 15 rows, ten steps: 5 per step from nine peers

  Group alike("auto");
  alike.bring(false);
  for (int i = 0; i < 3; ++i) next = alike.next();
  CHECK(alike.remembered(0) < 0.01);
  CHECK_FALSE(next.injection);
  CHECK(next.rows.front() == 20);

  Group every("auto");
  every.config().sync_policy = "every";
  every.bring(true);
  for (Facts& f : every.table().facts) f.flags = 0;
  for (int i = 0; i < 3; ++i) next = every.next();
  CHECK_FALSE(next.injection);  // a device that synchronizes after every step does not drift

  Group few("auto");
  few.bring(true);
  for (Facts& f : few.table().facts)
    for (float& n : f.measurements) n /= 100;
  for (int i = 0; i < 3; ++i) next = few.next();
  CHECK_FALSE(next.injection);  // too few labels for a result
}

TEST_CASE("Injection: streams that become alike stop it, well below where it began") {
  Group group("auto");
  group.bring(true);
  for (int i = 0; i < 3; ++i) group.next();
  group.bring(false);
  int rounds = 0;
  double before = 1;
  for (; rounds < 200 && group.next().injection; ++rounds) before = group.remembered(0);
  CHECK(rounds >= 5);
  CHECK(rounds < 100);
  CHECK(before > 0.28);
  CHECK(before < 0.30);
}
