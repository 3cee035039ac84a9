// Measures the cost of sending only the largest elements, relative to one pass r += g over the same elements,
// in turns in one process: the selection, a round's whole compression (stage, encode, subtract the sent part,
// keep the rest), and LibTorch's topk. Also the bits of a slot, relative to the entropy of its positions and
// its values.
//   build/release/bench_selection [REPETITIONS]
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "bench/largest_by_torch.h"
#include "bench/measure.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/rng.h"
#include "core/vector_code.h"
#include "sync/coding/gains.h"
#include "sync/coding/positions.h"
#include "sync/coding/selection.h"
#include "sync/coding/values.h"
#include "sync/residual/residual.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::bench;

namespace {

RIVULET_VECTOR_CODE void add(const float* __restrict g, std::size_t count, float* __restrict r) {
  for (std::size_t i = 0; i < count; ++i) r[i] += g[i];
}

struct Times {
  std::vector<double> pass, selection, gains, compression, coding, torch;
};

/// Returns cubes of normal values: like gradients, they have heavy tails.
std::vector<float> gradient(std::size_t count) {
  Rng rng = Rng::derive(3, "gradient", count);
  std::vector<float> numbers(count);
  for (float& x : numbers) {
    const double normal = rng.normal();
    x = static_cast<float>(1e-3 * normal * normal * normal);
  }
  return numbers;
}

const CompressorEntry& topk() {
  const auto all = builtin_compressors();
  return **std::ranges::find(all, std::string_view("topk"), &CompressorEntry::name);
}

class Bench {
 public:
  Bench(std::size_t count, double density)
      : g_(gradient(count)), r_(count), k_(static_cast<std::size_t>(density * static_cast<double>(count))) {
    shape_.tensors = {count};
    settings_.set("compression.topk.values", std::string("i8"));
    settings_.set("compression.topk.per_tensor", false);
    coding_ = {.shape = &shape_, .keep_ratio = density, .settings = &settings_};
    slot_.resize(topk().slot_bytes(shape_, density, settings_));
  }

  Times run(int repetitions) {
    Times times;
    Residual residual(shape_);
    for (int i = 0; i < repetitions + 2; ++i) {
      std::ranges::fill(r_, 0.0F);
      const double pass = seconds([&] { add(g_.data(), g_.size(), r_.data()); });
      const double selection = seconds([&] { select_largest<float>(r_, k_, found_); });
      const double gains = seconds([&] { gains_ = gains_of(view(g_), 0.5, view(r_)); });
      const double coding = seconds([&] { code(); });
      const double compression = seconds([&] { compress(residual); });
      const double torch = seconds([&] { largest_by_torch(r_, k_, by_torch_); });
      if (i < 2) continue;  // warm-up
      times.pass.push_back(pass);
      times.selection.push_back(selection);
      times.gains.push_back(gains);
      times.coding.push_back(coding);
      times.compression.push_back(compression);
      times.torch.push_back(torch);
    }
    check();
    return times;
  }

  /// Returns the bits of a slot with the requested entries, relative to entropy and values.
  [[nodiscard]] double bits_to_entropy() const {
    const auto n = static_cast<double>(g_.size());
    const auto k = static_cast<double>(found_.size());
    const double p = k / n;
    const double entropy = -n * (p * std::log2(p) + (1 - p) * std::log2(1 - p));
    const double bits = static_cast<double>(cost_of_positions(found_).bits) + 8 * k + 32;
    return bits / (entropy + 8 * k);
  }

 private:
  template <class Work>
  double seconds(Work work) {
    const TimePoint began = clock_.now();
    work();
    return to_seconds(clock_.now() - began);
  }
  [[nodiscard]] GradientView view(std::vector<float>& numbers) const {
    return {
        .data = reinterpret_cast<std::byte*>(numbers.data()), .count = numbers.size(), .scalar = Scalar::f32};
  }
  /// Encodes the elements that are already selected.
  void code() {
    BitWriter out(slot_);
    const PositionCost cost = cost_of_positions(found_);
    put_positions(found_, cost, out);
    out.align();
    gather_values<float>(r_, found_, values_);
    tensors_.assign(found_.size(), 0);
    put_values(values_, tensors_, 1, ValueCode::i8, out);
  }
  void compress(Residual& residual) {
    const GradientView staged = residual.stage(view(g_), 1.0);
    topk().encode(coding_, staged, slot_);
    residual.sent(topk(), coding_, slot_);
    residual.commit();
  }
  void check() {
    std::ranges::sort(by_torch_);
    RIVULET_CHECK(found_.size() == k_ && by_torch_.size() == k_, "wrong number of selected elements");
    const auto least = [&](const auto& positions) {
      float size = std::abs(r_[positions.front()]);
      for (const std::uint32_t at : positions) size = std::min(size, std::abs(r_[at]));
      return size;
    };
    RIVULET_CHECK(least(found_) == least(by_torch_), "different elements than LibTorch");
  }

  const RealClock clock_;
  std::vector<float> g_, r_;
  std::size_t k_;
  ContributionShape shape_;
  Settings settings_;
  Coding coding_;
  std::vector<std::byte> slot_;
  std::vector<std::uint32_t> found_, by_torch_, tensors_;
  std::vector<float> values_;
  Gains gains_;
};

void report(std::size_t count, double density, int repetitions) {
  Bench bench(count, density);
  const Times times = bench.run(repetitions);
  std::vector<double> with_pass;
  for (std::size_t i = 0; i < times.pass.size(); ++i)
    with_pass.push_back((times.pass[i] + times.selection[i]) / times.pass[i]);
  fmt::print("{} million elements, {} % selected; r += g takes {:.3g} ms\n", count / 1'000'000, 100 * density,
             1e3 * percentile(times.pass, 0.5));
  fmt::print("  r += g and selection         {}\n", spread(with_pass, "passes"));
  fmt::print("  gains of all keep ratios     {}\n", spread(ratios(times.gains, times.pass), "passes"));
  fmt::print("  compression of a round       {}\n", spread(ratios(times.compression, times.pass), "passes"));
  fmt::print("  encoding vs. selection       {}\n", spread(ratios(times.coding, times.selection), "times"));
  fmt::print("  LibTorch's topk vs. ours     {}\n", spread(ratios(times.torch, times.selection), "times"));
  fmt::print("  bits vs. entropy and values  {:.4f}\n", bench.bits_to_entropy());
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 21;
  for (const std::size_t millions : {1, 10, 25})
    for (const double density : {0.01, 0.001}) report(millions * 1'000'000, density, repetitions);
  report(1'000'000, 0.1, repetitions);
}
