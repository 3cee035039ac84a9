// The published cost of collectives, and the controllers that choose by measured exchange times.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/rng.h"
#include "runtime/config/config.h"
#include "sync/policy/arbiter.h"
#include "sync/policy/coherence.h"
#include "sync/published/collective_cost.h"
#include "tests/support/gated_group.h"
#include "tests/support/members.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;
using rivulet::testing::flat;
using rivulet::testing::Gated;

namespace {

using Cost = double (*)(const LinkCost&, std::size_t, const SparseBytes&);

/// With N bytes of values, and as many of positions: latency times bandwidth over these bytes at which two
/// costs are equal. Both are linear in the latency.
double threshold(Cost one, Cost other, std::size_t world) {
  const auto difference = [&](double latency) {
    return one({latency, 1}, world, {1, 1}) - other({latency, 1}, world, {1, 1});
  };
  return -difference(0) / (difference(1) - difference(0));
}

/// Milliseconds for a model's elements at 4 bytes each, N = 8.
std::array<double, 3> milliseconds(double parameters, double share, double gigabits, double latency) {
  const LinkCost link{latency, 1 / (gigabits * 1.25e8)};
  const double bytes = 4 * parameters * share;
  return {1e3 * gather_seconds(link, 8, {bytes, bytes}), 1e3 * shared_ring_seconds(link, 8, {bytes, bytes}),
          1e3 * shared_tree_seconds(link, 8, {bytes, bytes})};
}

/// A group with a computed link and one controller of collectives.
class LinkGroup {
 public:
  LinkGroup(std::size_t world, std::string_view collective, double keep = 0.01,
            const char* compressor = "topk") {
    config_.collective = collective;
    config_.compression_policy = keep < 1 ? "fixed" : "none";
    config_.batch_policy = "fixed";
    config_.tensors = {1'000'000};
    config_.contribution_bytes = 4'000'000;
    Settings settings = runtime::Config::default_settings();
    settings.set("compression.compressor", std::string(compressor));
    settings.set("compression.keep", keep);
    settings.set("compression.momentum", std::string("group"));
    settings.set("sync.kept_max", 20.0);
    config_.settings = settings_of(config_, settings);
    controllers_ = controllers_of(config_, builtin_controllers()).value();
    state_ = first_state(testing::members(world), config_, controllers_);
    table_.facts.resize(world);
    table_.sections.resize(world);
  }

  /// One round; returns the collective of the next.
  std::string round() {
    const Schedule entered = state_.last.next;
    const auto halves = static_cast<double>(entered.way.payload_bytes) / 2;
    const std::size_t world = table_.size();
    const auto n = static_cast<double>(world);
    double seconds = tree_seconds(link, world, 2 * halves / log2_of(n));
    if (entered.way.collective == "gather") seconds = gather_seconds(link, world, {halves, halves});
    if (entered.way.collective == "shared_index")
      seconds = shared_ring_seconds(link, world, {halves, halves});
    if (entered.way.collective == "ring") seconds = ring_seconds(link, world, 2 * halves);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      Facts& f = table_.facts[rank];
      f.rank = rank;
      f.rows_max = 64;
      f.rows = rows;
      f.measurements = {static_cast<float>(kept), 1.0F, 0.1F, static_cast<float>(seconds_)};
      f.measurements.resize(measurements_of(controllers_));
    }
    seconds_ = seconds;
    return plan(table_, config_, controllers_, state_).next.way.collective;
  }
  std::string after(int rounds) {
    std::string last;
    for (int i = 0; i < rounds; ++i) last = round();
    return last;
  }
  [[nodiscard]] const RoundPlan& last() const { return state_.last; }
  std::vector<double>& memory() {
    for (ControllerMemory& own : state_.memory)
      if (own.name == "collective/learned") return own.values;
    FAIL("no memory");
    return state_.memory.front().values;
  }

  LinkCost link{0.001, 8e-8};
  std::uint32_t rows = 64;
  double kept = 1;  ///< in contributions

 private:
  PolicyConfig config_;
  Controllers controllers_;
  PolicyState state_;
  FactsTable table_;
  double seconds_ = 0;
};

}  // namespace

TEST_CASE("Collective cost: log2 by exact operations is log2") {
  for (double x = 1; x < 5000; x *= 1.037) CHECK(log2_of(x) == doctest::Approx(std::log2(x)).epsilon(1e-14));
  for (int e = 0; e < 40; ++e) CHECK(log2_of(std::ldexp(1.0, e)) == e);
  CHECK(log2_of(0) == 0);
  CHECK(log2_of(std::nan("")) == 0);
}

TEST_CASE("Collective cost: the thresholds between collectives, four digits") {
  struct Line {
    std::size_t world;
    double ring_tree, ring_gather, tree_gather;
  };
  for (const Line& line :
       {Line{3, 2.2126, 0.2704, -0.2381}, Line{4, 1.25, 0.4167, 0}, Line{6, 0.7253, 0.5748, 0.4343},
        Line{8, 0.53125, 0.6607, 0.8333}, Line{16, 0.2784, 0.8042, 2.25}, Line{32, 0.155, 0.8881, 4.7},
        Line{64, 0.088, 0.9368, 9.0}}) {
    CAPTURE(line.world);
    const auto near = [](double wanted) { return doctest::Approx(wanted).epsilon(6e-4).scale(0.1); };
    CHECK(threshold(shared_ring_seconds, shared_tree_seconds, line.world) == near(line.ring_tree));
    CHECK(threshold(shared_ring_seconds, gather_seconds, line.world) == near(line.ring_gather));
    CHECK(threshold(shared_tree_seconds, gather_seconds, line.world) == near(line.tree_gather));
  }
  CHECK(threshold(shared_ring_seconds, gather_seconds, 2) == doctest::Approx(0));
}

TEST_CASE("Collective cost: the least of the three is the one that the published rules name") {
  Rng rng(3);
  int chosen[3] = {};
  for (int i = 0; i < 100'000; ++i) {
    const std::size_t world = 2 + rng.below(127);
    const auto n = static_cast<double>(world);
    const double depth = std::log2(n);
    const double latency = std::exp(-12 + 10 * rng.uniform());
    const double byte = std::exp(-24 + 8 * rng.uniform());
    const double bytes = std::exp(18 * rng.uniform());
    const LinkCost link{latency, byte};
    const double r = latency / byte / bytes;
    const double ring = shared_ring_seconds(link, world, {bytes, bytes});
    const double tree = shared_tree_seconds(link, world, {bytes, bytes});
    const double gather = gather_seconds(link, world, {bytes, bytes});
    const bool ring_before_tree =
        world == 2 || world == 3 ? ring < tree : r < (depth - (n - 1) / n) / (n - 1 - depth);
    const bool ring_before_gather = r < 1 - 1 / n - depth / (2 * (n - 1));
    const bool tree_before_gather = r < (n - 1) / depth - 1.5;
    const int rule = ring_before_tree && ring_before_gather    ? 0
                     : !ring_before_tree && tree_before_gather ? 1
                                                               : 2;
    const double costs[] = {ring, tree, gather};
    const auto least = std::min_element(costs, costs + 3) - costs;
    // Of equal costs either is correct.
    CHECK(costs[rule] <= costs[least] * (1 + 1e-9));
    ++chosen[rule];
  }
  for (const int often : chosen) CHECK(often > 1000);
}

TEST_CASE("Collective cost: rows of table VI and table II as printed, within 4 %") {
  const auto resnet = milliseconds(11'689'512, 0.1, 10, 0.001);
  const auto alexnet = milliseconds(61'100'840, 0.001, 1, 0.001);
  const double printed[] = {54, 35, 43.2, 31.33, 27, 27.3};
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(resnet.at(i) == doctest::Approx(printed[i]).epsilon(0.04));
    CHECK(alexnet.at(i) == doctest::Approx(printed[3 + i]).epsilon(0.04));
  }
  CHECK(1e3 * ring_seconds({0.01, 1 / 1.25e9}, 8, 4e8) == doctest::Approx(716).epsilon(0.04));
  CHECK(1e3 * ring_seconds({0.01, 1 / 1.25e8}, 8, 4e8) == doctest::Approx(5773).epsilon(0.04));
}

TEST_CASE("Learned collective: gathers where messages are dear, shares positions where bytes are") {
  LinkGroup slow(8, "learned");
  slow.link = {1e-5, 1e-6};
  CHECK(slow.after(120) == "shared_index");
  LinkGroup far(8, "learned");
  far.link = {0.2, 1e-8};
  CHECK(far.after(120) == "gather");
  LinkGroup two(2, "learned");
  two.link = {1e-5, 1e-6};
  CHECK(two.after(120) == "gather");
}

TEST_CASE("Learned collective: follows a link that changes, while it runs, but not to and fro") {
  LinkGroup group(8, "learned");
  group.link = {1e-5, 1e-6};
  REQUIRE(group.after(120) == "shared_index");
  group.link = {0.2, 1e-8};
  int until = 1;
  while (until < 300 && group.round() != "gather") ++until;
  CHECK(until < 100);
  int changes = 0;
  std::string last = "gather";
  for (int i = 0; i < 400; ++i) {
    group.link.message = i % 2 == 0 ? 0.19 : 0.21;
    const std::string now = group.round();
    changes += now != last ? 1 : 0;
    last = now;
  }
  CHECK(changes == 0);
}

TEST_CASE("Learned collective: stays for fifty rounds but for trials of a few, whatever the link does") {
  LinkGroup group(8, "learned");
  std::vector<int> stays{1};
  std::string last = group.round();
  for (int i = 0; i < 3000; ++i) {
    group.link = i / 10 % 2 == 0 ? LinkCost{1e-5, 1e-6} : LinkCost{0.2, 1e-8};
    const std::string now = group.round();
    if (now != last) stays.push_back(0);
    ++stays.back();
    last = now;
  }
  CHECK(stays.size() > 10);
  for (std::size_t i = 0; i + 1 < stays.size(); ++i) CHECK((stays[i] >= 50 || stays[i] <= 7));
}

TEST_CASE(
    "Learned collective: whole contributions by halves where messages are dear, by a ring where bytes are") {
  LinkGroup group(8, "learned", 1.0);
  const std::string first = group.round();
  CHECK((first == "ring" || first == "halving_doubling"));
  group.link = {0.2, 1e-9};
  CHECK(group.after(200) == "halving_doubling");
}

TEST_CASE("Shared index: devices that keep too much gather until they keep half of that") {
  for (const char* collective : {"shared_index", "learned"}) {
    LinkGroup group(8, collective);
    group.link = {1e-5, 1e-6};
    REQUIRE(group.after(120) == "shared_index");
    group.kept = 40;
    CHECK(group.after(60) == "gather");
    group.kept = 15;  // below the limit, but not below half of it
    CHECK(group.after(60) == "gather");
    group.kept = 5;
    CHECK(group.after(120) == "shared_index");
  }
}

TEST_CASE(
    "Learned collective: what too much is kept for comes again, also where the other takes hardly longer") {
  LinkGroup group(8, "learned");
  // Eight tenths of the other's time.
  const double bytes = static_cast<double>(group.last().next.way.payload_bytes) * 1e-7;
  group.link = {0.221 * bytes, 1e-7};
  REQUIRE(group.after(120) == "shared_index");
  group.kept = 40;
  REQUIRE(group.after(60) == "gather");
  group.kept = 1;
  CHECK(group.after(200) == "shared_index");
}

TEST_CASE("Learned collective: rounds in which nothing is exchanged teach nothing") {
  LinkGroup group(8, "learned");
  group.link = {1e-5, 1e-6};
  const std::string first = group.round();
  group.rows = 0;
  for (int i = 0; i < 300; ++i) CHECK(group.round() == first);
}

TEST_CASE("Learned collective: thin matrices have one way to be summed, and no trial of it") {
  LinkGroup group(8, "learned", 0.01, "low_rank");
  for (int i = 0; i < 200; ++i) {
    CHECK(group.round() == "low_rank");
    CHECK(group.last().why.find("trial") == std::string::npos);
  }
}

TEST_CASE("Learned collective: a gate that sends all in some rounds and little in others: both are learned") {
  const auto ways = [](const LinkCost& link) {
    constexpr std::size_t world = 8;
    Gated group("two-point", world, 1'000'000);
    group.config.collective = "learned";
    group.settings.set("compression.two_point.half_life", 0.01);
    std::pair<std::string, std::string> last;
    for (int i = 0; i < 1000; ++i) {
      const Way way = group.step(flat(i % 3 == 0 ? 0.1 : 0.95)).now.way.value();
      (way.compressor == "dense" ? last.first : last.second) = way.collective;
      const auto bytes = static_cast<double>(way.payload_bytes);
      const SparseBytes halves{bytes / 2, bytes / 2};
      group.sync_seconds = way.collective == "gather"         ? gather_seconds(link, world, halves)
                           : way.collective == "shared_index" ? shared_ring_seconds(link, world, halves)
                           : way.collective == "ring"         ? ring_seconds(link, world, bytes)
                                                              : tree_seconds(link, world, bytes / 3);
    }
    return last;
  };
  CHECK(ways({1e-5, 1e-6}) == std::pair<std::string, std::string>("ring", "shared_index"));
  CHECK(ways({0.2, 1e-9}) == std::pair<std::string, std::string>("halving_doubling", "gather"));
}

TEST_CASE("Learned collective: what one pair is due for waits while something else settles") {
  for (const int rounds : {49, 50, 51, 55}) {
    Gated group("two-point", 8, 1'000'000);
    group.config.collective = "learned";
    group.settings.set("compression.two_point.half_life", 1.0);
    group.begin();
    const auto way = [&](double gain) { return group.step(flat(gain)).now.way.value().collective; };
    for (int i = 0; i < rounds; ++i) way(0.95);
    CHECK(group.step(flat(0.1)).now.way.value().compressor ==
          "dense");  // the earlier times have been learned
    const double* changes = nullptr;
    for (ControllerMemory& own : group.state.memory)
      if (own.name == "collective/learned") changes = &own.values.at(2);
    REQUIRE(changes != nullptr);
    const double before = *changes;
    group.state.last.next.freeze = true;
    CHECK(group.step(flat(0.95)).now.way.value().compressor == "topk");
    CHECK(*changes == before);
  }
}

TEST_CASE("Learned collective: memory that somebody else has written is read as it may be") {
  LinkGroup group(8, "learned");
  group.after(2);  // it has measured an exchange
  for (const double strange : {9.0, 0.5, -3.0, 1e300}) {
    auto& memory = group.memory();
    std::ranges::fill(memory, strange);
    const std::string now = group.round();
    CHECK((now == "gather" || now == "shared_index"));
  }
}
