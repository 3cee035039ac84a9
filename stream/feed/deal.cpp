#include "stream/feed/deal.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "core/rng.h"

namespace rivulet::stream::feeding {
namespace {

template <class T>
void shuffle(std::vector<T>& items, Rng rng) {
  for (std::size_t n = items.size(); n > 1; --n) std::swap(items[n - 1], items[rng.below(n)]);
}

/// Allowed classes of each partition, assigned round-robin from a shuffled ring of the classes.
std::vector<std::set<int>> classes_of(const std::set<int>& all, std::size_t partitions, int each,
                                      std::uint64_t seed) {
  std::vector<int> ring(all.begin(), all.end());
  shuffle(ring, Rng::derive(seed, "feeder classes"));
  std::vector<std::set<int>> classes(partitions);
  std::size_t at = 0;
  for (auto& own : classes)
    for (int i = 0; i < each && own.size() < ring.size(); ++i) own.insert(ring[at++ % ring.size()]);
  return classes;
}

/// Returns the partition that is furthest below its share; weights.size() if no partition may get the record.
std::size_t neediest(const std::vector<double>& weights, const std::vector<std::vector<std::uint32_t>>& dealt,
                     const std::vector<std::set<int>>& classes, std::optional<int> label) {
  std::size_t best = weights.size();
  double least = 0;
  for (std::size_t p = 0; p < weights.size(); ++p) {
    if (weights[p] <= 0 || (!classes.empty() && !classes[p].contains(*label))) continue;
    const double full = static_cast<double>(dealt[p].size() + 1) / weights[p];
    if (best != weights.size() && full >= least) continue;
    best = p;
    least = full;
  }
  return best;
}

}  // namespace

Deck::Deck(std::vector<std::uint32_t> records, bool repeat, std::uint64_t seed, std::uint64_t partition,
           Order order)
    : records_(std::move(records)), repeat_(repeat), seed_(seed), partition_(partition), order_(order) {}

std::optional<std::uint32_t> Deck::draw() {
  if (finished()) return std::nullopt;
  if (at_ == records_.size()) {
    at_ = 0;
    if (order_ == Order::shuffled)
      shuffle(records_, Rng::derive(derive_seed(seed_, "feeder repeat", partition_), "epoch", ++epoch_));
  }
  return records_[at_++];
}

Result<std::vector<std::vector<std::uint32_t>>> deal(const Dataset& data, const std::vector<double>& weights,
                                                     int labels_per_device, std::uint64_t seed, Order kept) {
  std::vector<std::uint32_t> order(data.size());
  std::iota(order.begin(), order.end(), 0U);
  if (kept == Order::shuffled) shuffle(order, Rng::derive(seed, "feeder order"));
  std::vector<std::set<int>> classes;
  if (labels_per_device > 0) {
    std::set<int> all;
    for (std::size_t i = 0; i < data.size(); ++i) {
      const auto label = data.label(i);
      if (!label)
        return Error{
            ErrorCode::usage,
            "labels per device need a data set with class labels (IDX); this one is " + data.format()};
      all.insert(*label);
    }
    classes = classes_of(all, weights.size(), labels_per_device, seed);
  }
  std::vector<std::vector<std::uint32_t>> dealt(weights.size());
  for (const auto record : order) {
    const std::size_t p =
        neediest(weights, dealt, classes, classes.empty() ? std::nullopt : data.label(record));
    if (p < weights.size()) dealt[p].push_back(record);
  }
  return dealt;
}

}  // namespace rivulet::stream::feeding
