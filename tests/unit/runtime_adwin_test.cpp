// Compares Adwin with River's: the same detections, windows, means and variances, value by value.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <type_traits>
#include <vector>

#include "runtime/train/adwin.h"

using rivulet::runtime::Adwin;
static_assert(std::is_trivially_copyable_v<Adwin>);

namespace {

/// As in tests/support/programs/adwin.py, bit for bit.
class Chance {
 public:
  double uniform() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 11) * 0x1p-53;
  }
  double normal() {
    double sum = 0;
    for (int i = 0; i < 12; ++i) sum += uniform();
    return sum - 6;
  }

 private:
  std::uint64_t state_ = 1;
};

double bernoulli(Chance& chance, double mean) {
  return chance.uniform() < mean ? 1 : 0;
}
double about(Chance& chance, double mean) {
  return mean + 0.1 * chance.normal();
}
double always(Chance& /*chance*/, double mean) {
  return mean;
}

/// State after this number of values.
struct Seen {
  int at = 0;
  std::uint64_t width = 0;
  double mean = 0;
  double variance = 0;
};

struct Stream {
  std::string name;
  double (*kind)(Chance&, double) = nullptr;
  double before = 0;  ///< mean
  double after = 0;
  int begin = 0;   ///< first value of the change
  int length = 0;  ///< values until it is complete
  int count = 0;
  double delta = 0;
  std::vector<Seen> detections;
  std::vector<Seen> windows;  ///< at a few positions

  [[nodiscard]] double mean(int i) const {
    if (i < begin) return before;
    if (i >= begin + length) return after;
    return before + static_cast<double>(i - begin) / length * (after - before);
  }
};

// Output of tests/support/programs/adwin.py.
// clang-format off
const std::vector<Stream> streams = {
    {"stationary", bernoulli, 0.3, 0.3, 0, 0, 100000, 0.002,
     {},
     {{14285, 14286, 0.29700405991880163, 0.2087926483105509}, {33333, 33334, 0.3002939941201176, 0.2101175112155057}, {50013, 50014, 0.2984964210021194, 0.20939630765104478}, {99999, 100000, 0.30031, 0.21012390389999847}}},
    {"stationary and rash", bernoulli, 0.3, 0.3, 0, 0, 100000, 0.3,
     {{6303, 800, 0.26125, 0.19299843749999962}, {10431, 1568, 0.32142857142857145, 0.21811224489796013}, {19967, 4416, 0.3111413043478261, 0.21433239307655963}, {33279, 5120, 0.3048828125, 0.21192928314208942}, {35615, 1824, 0.2993421052631579, 0.2097364092797789}, {49535, 4704, 0.289328231292517, 0.20561740586966049}, {49983, 384, 0.296875, 0.2087402343749998}, {53471, 544, 0.35294117647058826, 0.22837370242214222}, {53663, 160, 0.3375, 0.22359374999999995}, {65151, 1248, 0.3141025641025641, 0.21544214332675957}, {80863, 6496, 0.2995689655172414, 0.2098274004161709}, {86207, 224, 0.38839285714285715, 0.23754384566328005}, {87263, 800, 0.27, 0.19709999999999966}, {94143, 608, 0.2450657894736842, 0.1850085483033294}},
     {{14285, 3854, 0.2926829268292683, 0.20701963117192185}, {33333, 54, 0.35185185185185186, 0.22805212620027435}, {50013, 30, 0.3333333333333333, 0.22222222222222224}, {99999, 5856, 0.30293715846994534, 0.21116623648810123}}},
    {"abrupt rise", bernoulli, 0.2, 0.6, 3000, 0, 8000, 0.002,
     {{3071, 2560, 0.205078125, 0.16302108764648465}},
     {{1142, 1143, 0.18460192475940507, 0.15052405413452807}, {2666, 2667, 0.19310086239220098, 0.15581291933558952}, {4013, 942, 0.6019108280254777, 0.23961418313116137}, {7999, 4928, 0.5998376623376623, 0.24003244117895087}}},
    {"abrupt fall", bernoulli, 0.6, 0.2, 3000, 0, 8000, 0.002,
     {{3071, 160, 0.36875, 0.23277343750000382}},
     {{1142, 1143, 0.594925634295713, 0.24098912395355657}, {2666, 2667, 0.6002999625046869, 0.23993991752155844}, {4013, 942, 0.21762208067940553, 0.17026271068017218}, {7999, 4928, 0.19338474025974026, 0.1559870824944135}}},
    {"slow drift", bernoulli, 0.1, 0.6, 2000, 20000, 24000, 0.002,
     {{5183, 4160, 0.12548076923076923, 0.10973534578402383}, {9279, 3584, 0.22907366071428573, 0.17659891868124197}, {13951, 4160, 0.3456730769230769, 0.22618320081360985}, {19007, 4544, 0.46192781690140844, 0.24855050887410732}},
     {{3428, 3429, 0.10731991834354039, 0.09580235347027637}, {8000, 2817, 0.20234291799787008, 0.16140026153397707}, {12013, 2734, 0.32040965618141914, 0.21774730840712414}, {23999, 4992, 0.5885416666666666, 0.24216037326388923}}},
    {"normal", about, 1.0, 1.1, 5000, 0, 10000, 0.002,
     {{5119, 512, 1.0282132314005576, 0.013201739818544903}},
     {{1428, 1429, 1.0004592608993905, 0.009339025576303362}, {3333, 3334, 1.001180931858857, 0.009804980827059093}, {5013, 5014, 1.0012132372254297, 0.01005889824156052}, {9999, 4880, 1.0992432620860395, 0.010325050589064192}}},
    {"normal, far from 0", about, 10000.0, 9999.75, 2000, 0, 4000, 0.002,
     {{2047, 256, 9999.941811010305, 0.01696545892462715}},
     {{571, 572, 10000.004672808353, 0.008796448043859924}, {1333, 1334, 10000.001159542124, 0.009330925520934367}, {2013, 2014, 9999.99735934841, 0.009786998725877167}, {3999, 1952, 9999.75161449015, 0.010418447184802154}}},
    {"small change after long calm", bernoulli, 0.1, 0.13, 60000, 0, 80000, 0.002,
     {{64447, 56256, 0.10036262798634812, 0.09028997089002251}},
     {{11428, 11429, 0.09703386123020387, 0.08761829100496166}, {26666, 26667, 0.09918626017174785, 0.08934834596489052}, {40013, 40014, 0.09866546708651971, 0.08893059269111835}, {79999, 15552, 0.13728137860082304, 0.11843520169028042}}},
    {"constant", always, 0.7, 0.7, 0, 0, 5000, 0.002,
     {},
     {{714, 715, 0.6999999999999921, 2.4206405478920137e-29}, {1666, 1667, 0.700000000000022, 1.18240953008807e-28}, {2513, 2514, 0.7000000000000299, 3.1740294520121276e-28}, {4999, 5000, 0.6999999999999433, 6.6855275153679905e-28}}},
    {"constant step", always, 0.0, 1.0, 1000, 0, 1200, 0.002,
     {{1023, 56, 0.42857142857142855, 0.24489795918367355}},
     {{171, 172, 0.0, 0.0}, {400, 401, 0.0, 0.0}, {613, 614, 0.0, 0.0}, {1199, 176, 1.0, 0.0}}},
};
// clang-format on

void compare(const std::vector<Seen>& ours, const std::vector<Seen>& river) {
  REQUIRE(ours.size() == river.size());
  for (std::size_t i = 0; i < ours.size(); ++i) {
    CAPTURE(river[i].at);
    CHECK(ours[i].at == river[i].at);
    CHECK(ours[i].width == river[i].width);
    CHECK(std::abs(ours[i].mean - river[i].mean) < 1e-9);
    CHECK(std::abs(ours[i].variance - river[i].variance) < 1e-9);
  }
}

/// Detections, and the windows at the positions of `stream`.
struct Found {
  std::vector<Seen> detections;
  std::vector<Seen> windows;
  std::vector<bool> rose;
};

Found look_at(const Stream& stream) {
  Adwin adwin(stream.delta);
  Chance chance;
  Found found;
  for (int i = 0; i < stream.count; ++i) {
    const bool detected = adwin.add(stream.kind(chance, stream.mean(i)));
    const Seen seen{i, adwin.width(), adwin.mean(), adwin.variance()};
    if (detected) {
      found.detections.push_back(seen);
      found.rose.push_back(adwin.rose());
    }
    const std::size_t next = found.windows.size();
    if (next < stream.windows.size() && stream.windows[next].at == i) found.windows.push_back(seen);
  }
  return found;
}

}  // namespace

TEST_CASE("Adwin: detects at the same values as River, with the same windows") {
  for (const Stream& stream : streams) {
    CAPTURE(stream.name);
    const Found found = look_at(stream);
    compare(found.detections, stream.detections);
    compare(found.windows, stream.windows);
  }
}

TEST_CASE("Adwin: says which way the mean went") {
  int changes = 0;
  for (const Stream& stream : streams) {
    if (stream.before == stream.after) continue;
    CAPTURE(stream.name);
    for (const bool rose : look_at(stream).rose) {
      CHECK(rose == (stream.after > stream.before));
      ++changes;
    }
  }
  CHECK(changes > 8);
}

TEST_CASE("Adwin: an empty window has no mean, and what is not a number is left out") {
  Adwin adwin;
  CHECK(adwin.width() == 0);
  CHECK(adwin.mean() == 0);
  CHECK(adwin.variance() == 0);
  CHECK_FALSE(adwin.add(std::numeric_limits<double>::quiet_NaN()));
  CHECK_FALSE(adwin.add(std::numeric_limits<double>::infinity()));
  CHECK(adwin.width() == 0);
  CHECK_FALSE(adwin.add(0.5));
  CHECK(adwin.width() == 1);
  CHECK(adwin.mean() == 0.5);
}

TEST_CASE("Adwin: the value behind a detection begins a window of its own, and a copy goes its own way") {
  Adwin adwin;
  int i = 0;
  for (; i < 2000; ++i) {
    if (adwin.add(i < 1000 ? 0 : 1)) break;
  }
  REQUIRE(i < 2000);
  const Adwin copy = adwin;
  CHECK_FALSE(adwin.add(1));
  CHECK(adwin.width() == 1);
  CHECK(copy.width() > 1);
  CHECK(adwin.rose());
}

TEST_CASE("Adwin: looks as often, and at as few values, as it is told") {
  const auto first = [](Adwin adwin) {
    for (int i = 0; i < 2000; ++i) {
      if (adwin.add(i < 200 ? 0 : 1)) return i;
    }
    return -1;
  };
  CHECK(first(Adwin{0.002}) == 223);
  CHECK(first(Adwin{0.002, {.clock = 1}}) < 223);
  CHECK(first(Adwin{0.002, {.clock = 1000}}) == 999);
  CHECK(first(Adwin{0.002, {.clock = 1, .least_window = 50}}) > first(Adwin{0.002, {.clock = 1}}));
  CHECK(first(Adwin{0.002, {.clock = 1, .grace = 300}}) == 300);
}
