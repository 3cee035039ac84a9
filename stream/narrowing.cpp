#include "stream/narrowing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "stream/decoder/narrowing_watch.h"

namespace rivulet::stream {
namespace {

constexpr std::size_t sentences_max = 8;
constexpr std::uint64_t least_lost = 10;
constexpr std::uint64_t least_share = 20;  // 1 / share of all differences
constexpr double lost_beyond = 0.1;        // relative error of a difference
// Ratio of distance from 0 to range above which a shift helps: the model finally receives positions within
// the range, so only their precision matters.
constexpr double far = 64;

}  // namespace

void NarrowingWatch::look(std::size_t column, double x, float narrow) noexcept {
  Narrowing& feature = features_[column];
  Before& before = before_[column];
  feature.least = before.any ? std::min(feature.least, x) : x;
  feature.greatest = before.any ? std::max(feature.greatest, x) : x;
  if (before.any && before.x != x) {
    const double wanted = (x - before.x) * feature.scale;
    const double got = static_cast<double>(narrow) - static_cast<double>(before.narrow);
    ++feature.differences;
    feature.lost += std::abs(got - wanted) > lost_beyond * std::abs(wanted) ? 1 : 0;
  }
  before = {x, narrow, true};
}

bool loses(const Narrowing& feature) noexcept {
  const double range = feature.greatest - feature.least;
  const double distance = std::max(std::abs(feature.least), std::abs(feature.greatest));
  return feature.lost >= least_lost && feature.lost * least_share >= feature.differences &&
         distance > far * range;
}

double shift_for(const Narrowing& feature) noexcept {
  const double range = feature.greatest - feature.least;
  const double unit = range > 0 ? std::pow(10, std::floor(std::log10(range))) : 1;
  const double middle = feature.least + range / 2;
  return -std::round(middle / unit) * unit * feature.scale;
}

std::vector<std::string> narrowing_words(const Decoder& decoder) {
  std::vector<std::string> words;
  const auto features = decoder.narrowing();
  for (std::size_t i = 0; i < features.size() && words.size() < sentences_max; ++i) {
    const Narrowing& feature = features[i];
    if (!loses(feature)) continue;
    words.push_back(fmt::format(
        "feature \"{}\" ranges from {} to {}: 32 bits lose {} of {} differences between rows; a shift "
        "of {} preserves them",
        decoder.column_name(i), feature.least, feature.greatest, feature.lost, feature.differences,
        shift_for(feature)));
  }
  return words;
}

}  // namespace rivulet::stream
