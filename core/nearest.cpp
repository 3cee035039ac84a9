#include "core/nearest.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace rivulet {
namespace {

/// Levenshtein distance; a swap of neighbours counts as one edit.
std::size_t distance(const std::string& a, const std::string& b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t differs = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + differs});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

/// The name without its trailing number and the dash before it.
std::string stem_of(std::string name) {
  while (!name.empty() && name.back() >= '0' && name.back() <= '9') name.pop_back();
  if (name.ends_with('-')) name.pop_back();
  return name;
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  std::size_t least = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const auto& candidate : candidates) {
    const std::size_t d = distance(word, candidate);
    if (d >= least) continue;
    least = d;
    best = candidate;
  }
  return best;
}

std::string nearest_but_number(const std::string& word, const std::vector<std::string>& candidates) {
  auto others = candidates;
  std::erase_if(others, [&](const std::string& one) { return stem_of(one) == stem_of(word); });
  return nearest(word, others);
}

}  // namespace rivulet
