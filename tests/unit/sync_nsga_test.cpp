// Flexible communication searches its share with NSGA-II (Deb et al. 2002). Policy moo compares five shares
// instead: both must find the same compromise.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "core/rng.h"
#include "sync/policy/sync_cost.h"
#include "sync/published/gain.h"
#include "tests/support/gated_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::policy;
using namespace rivulet::testing;

namespace {

constexpr double least_share = 0.001;
constexpr double most_share = 0.1;
constexpr std::array candidates{0.1, 0.033, 0.011, 0.004, 0.001};

/// Seconds and 1 / gain of a share.
using Objectives = std::array<double, 2>;
struct Member {
  double share = 0;
  Objectives costs{};
  int front = 0;
  double distance = 0;
};

bool dominates(const Objectives& a, const Objectives& b) {
  return a[0] <= b[0] && a[1] <= b[1] && (a[0] < b[0] || a[1] < b[1]);
}

/// The front of each member: 0 is undominated, 1 dominated only by front 0, and so on.
void sort_into_fronts(std::vector<Member>& all) {
  std::vector<bool> done(all.size());
  for (int front = 0; std::ranges::count(done, false) > 0; ++front) {
    std::vector<std::size_t> now;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool beaten = std::ranges::any_of(all, [&](const Member& other) {
        return !done[static_cast<std::size_t>(&other - all.data())] && dominates(other.costs, all[i].costs);
      });
      if (!done[i] && !beaten) now.push_back(i);
    }
    for (const std::size_t i : now) {
      all[i].front = front;
      done[i] = true;
    }
  }
}

/// Crowding distance of each member within its front.
void measure_crowding(std::vector<Member>& all) {
  for (Member& one : all) one.distance = 0;
  for (std::size_t objective = 0; objective < 2; ++objective) {
    std::ranges::sort(all, {},
                      [&](const Member& one) { return std::pair(one.front, one.costs.at(objective)); });
    const double spread = all.back().costs.at(objective) - all.front().costs.at(objective) + 1e-300;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool edge = i == 0 || i + 1 == all.size() || all[i - 1].front != all[i].front ||
                        all[i + 1].front != all[i].front;
      all[i].distance +=
          edge ? 1e9 : std::abs(all[i + 1].costs.at(objective) - all[i - 1].costs.at(objective)) / spread;
    }
  }
}

bool is_better(const Member& a, const Member& b) {
  return a.front < b.front || (a.front == b.front && a.distance > b.distance);
}

/// Simulated binary crossover, eta 15, and polynomial mutation, eta 20: as published.
double child_of(double a, double b, Rng& rng) {
  double share = a;
  if (rng.uniform() < 0.9) {
    const double u = rng.uniform();
    const double beta = u <= 0.5 ? std::pow(2 * u, 1.0 / 16) : std::pow(1 / (2 * (1 - u)), 1.0 / 16);
    share = 0.5 * ((1 + beta) * a + (1 - beta) * b);
  }
  const double u = rng.uniform();
  const double step = u < 0.5 ? std::pow(2 * u, 1.0 / 21) - 1 : 1 - std::pow(2 * (1 - u), 1.0 / 21);
  return std::clamp(share + step * (most_share - least_share), least_share, most_share);
}

/// Published: 40 members, 10 children in each of 40 generations, seed 1.
template <class Costs>
std::vector<Member> nsga2(const Costs& costs_of) {
  Rng rng(1);
  std::vector<Member> all;
  for (int i = 0; i < 40; ++i) {
    const double share = least_share + rng.uniform() * (most_share - least_share);
    all.push_back({share, costs_of(share)});
  }
  for (int generation = 0; generation < 40; ++generation) {
    sort_into_fronts(all);
    measure_crowding(all);
    const auto pick = [&] {
      const Member& a = all[rng.below(40)];
      const Member& b = all[rng.below(40)];
      return is_better(a, b) ? a.share : b.share;
    };
    std::vector<Member> children;
    for (int i = 0; i < 10; ++i) {
      const double share = child_of(pick(), pick(), rng);
      children.push_back({share, costs_of(share)});
    }
    all.insert(all.end(), children.begin(), children.end());
    sort_into_fronts(all);
    measure_crowding(all);
    std::ranges::sort(all, is_better);
    all.resize(40);
  }
  std::erase_if(all, [](const Member& one) { return one.front > 0; });
  return all;
}

/// 0.6 for time, 0.4 for gain, each scaled to 0 .. 1 over [least_share, most_share].
template <class Costs>
double scalarised(double share, const Costs& costs_of) {
  const Objectives now = costs_of(share);
  const Objectives fast = costs_of(least_share);
  const Objectives full = costs_of(most_share);
  return std::max(0.6 * (now[0] - fast[0]) / (full[0] - fast[0]),
                  0.4 * (now[1] - full[1]) / (fast[1] - full[1]));
}

/// Gain of a share, of three kinds: a power of it, saturating, and proportional.
double gain_of(int kind, double parameter, double keep) {
  if (kind == 0) return std::pow(keep, 0.02 + 0.6 * parameter);
  if (kind == 1) return 1 - std::exp(-keep / (0.0005 + 0.003 * parameter));
  return std::min(1.0, 0.1 + 0.2 * parameter + 8 * keep);
}

Gains gains_of(int kind, double parameter) {
  Gains gains;
  for (std::size_t i = 0; i < gain_keeps.size(); ++i)
    gains.shares.at(i) = static_cast<float>(gain_of(kind, parameter, gain_keeps.at(i)));
  gains.contribution_norm = gains.gradient_norm = 1;
  return gains;
}

}  // namespace

TEST_CASE(
    "MOO: the published search comes to a share between the neighbours of the one that moo has chosen") {
  Rng rng(9);
  std::array<int, candidates.size()> chosen{};
  for (int scenario = 0; scenario < 60; ++scenario) {
    const double fixed = 0.001 + 0.1 * rng.uniform();
    const double each = std::exp(-20 + 8 * rng.uniform());
    const Gains gains = gains_of(scenario % 3, rng.uniform());
    CAPTURE(scenario);
    Gated group("moo", 4, 1'000'000);
    for (int i = 0; i < 60; ++i) {
      group.sent = i % 2 == 0 ? 1e5 : 1e6;
      group.sync_seconds = fixed + each * group.sent;
      group.step(gains);
    }
    const double share = group.state.last.now.way.value().keep_ratio;
    const Inputs inputs{group.table, group.config, group.state.last.next};
    const auto costs_of = [&](double keep) {
      const Way way = way_of(group.config, 4, "topk", keep);
      const double bytes = payloads_sent(way.collective, 4) * static_cast<double>(way.payload_bytes);
      return Objectives{fixed + each * bytes, 1 / mean_gain(inputs, keep, GainKind::squared)};
    };
    const auto front = nsga2(costs_of);
    REQUIRE(front.size() > 20);
    const auto best = std::ranges::min_element(
        front, {}, [&](const Member& one) { return scalarised(one.share, costs_of); });
    const auto* const place = std::ranges::find(candidates, share);
    REQUIRE(place != candidates.end());
    ++chosen.at(static_cast<std::size_t>(place - candidates.begin()));
    const double above = place == candidates.begin() ? most_share : *(place - 1);
    const double below = place + 1 == candidates.end() ? least_share : *(place + 1);
    CHECK(best->share <= above * 1.02);
    CHECK(best->share >= below * 0.98);
    for (const double other : candidates)  // and none of the five is better
      CHECK(scalarised(share, costs_of) <= scalarised(other, costs_of) + 1e-9);
  }
  CHECK(std::ranges::count_if(chosen, [](int often) { return often > 3; }) >= 3);
}
