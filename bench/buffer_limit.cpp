// Measures the cost of the buffer beyond boost::lockfree::spsc_queue, on which it is built. 256 rows in and
// out on one thread, in turns; CPU time, without repetitions that were preempted. Slot numbers alone, and
// with rows of 785 values, written once by a decoder and copied once into the batch. "Bare" is the minimum:
// two arrays, two rings of slot numbers (free and full), no tags, checks or counters.
//   build/release/bench_buffer_limit [REPETITIONS]
#include <array>
#include <boost/lockfree/spsc_queue.hpp>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "bench/measure.h"
#include "buffer/batch.h"
#include "buffer/row_buffer.h"
#include "core/check.h"
#include "core/clock.h"
#include "devices/device.h"

using namespace rivulet;
using namespace rivulet::bench;

namespace {

constexpr std::size_t rows = 256;
constexpr std::size_t slots = 4096;  // 12.5 MB: larger than the cache, as in a device
constexpr std::size_t columns = 784;

using Ring = boost::lockfree::spsc_queue<buffer::SlotIndex>;
using Slots = std::array<buffer::SlotIndex, rows>;

/// Rows with a device's alignment to cache lines, which can halve the time of a 3 KB copy.
class Store {
 public:
  explicit Store(std::size_t count)
      : memory_(devices::make_host_device()->allocate(count * columns * sizeof(float)).value()),
        numbers_(memory_->view(Scalar::f32, count * columns).as<float>()) {}
  [[nodiscard]] float* row(std::size_t i) const { return &numbers_[i * columns]; }
  [[nodiscard]] std::span<float> numbers() const { return numbers_; }

 private:
  std::unique_ptr<devices::Memory> memory_;
  std::span<float> numbers_;
};

/// Rows for a decoder to write, not recently read.
class Source {
 public:
  Source() {
    for (std::size_t i = 0; i < rows_.numbers().size(); ++i) rows_.numbers()[i] = static_cast<float>(i % 256);
  }
  void next(float* to) {
    std::memcpy(to, rows_.row(at_), columns * sizeof(float));
    at_ = (at_ + 1) % slots;
  }

 private:
  Store rows_{slots};
  std::size_t at_ = 0;
};

double sum_of(std::span<const float> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0);
}

/// The slots and a ring in each direction, the minimum for a store of reused slots.
class Bare {
 public:
  Bare() : full_(slots), free_(slots) {
    std::vector<buffer::SlotIndex> all(slots);
    std::iota(all.begin(), all.end(), buffer::SlotIndex{0});
    free_.push(all.data(), all.size());
  }
  /// One ring: slot numbers in and out.
  void one_ring() {
    Slots some{};
    full_.push(some.data(), rows);
    RIVULET_CHECK(full_.pop(some.data(), rows) == rows, "wrong number of rows");
  }
  void numbers() {
    Slots some;
    RIVULET_CHECK(free_.pop(some.data(), rows) == rows, "no free slots");
    full_.push(some.data(), rows);
    RIVULET_CHECK(full_.pop(some.data(), rows) == rows, "wrong number of rows");
    free_.push(some.data(), rows);
  }
  void whole_rows(Source& source) {
    Slots some;
    RIVULET_CHECK(free_.pop(some.data(), rows) == rows, "no free slots");
    for (const auto slot : some) source.next(store_.row(slot));
    full_.push(some.data(), rows);
    RIVULET_CHECK(full_.pop(some.data(), rows) == rows, "wrong number of rows");
    for (std::size_t i = 0; i < rows; ++i)
      std::memcpy(batch_.row(i), store_.row(some[i]), columns * sizeof(float));
    free_.push(some.data(), rows);
  }
  [[nodiscard]] double sum() const { return sum_of(batch_.numbers()); }

 private:
  Ring full_;
  Ring free_;
  Store store_{slots};
  Store batch_{rows};
};

/// The product's buffer and batch.
class Ours {
 public:
  void numbers() {
    for (std::size_t i = 0; i < rows; ++i) publish();
    buffer_.flush();
    taken_.clear();
    RIVULET_CHECK(buffer_.take(rows, taken_) == rows, "wrong number of rows");
    buffer_.release(taken_);
  }
  void whole_rows(Source& source) {
    for (std::size_t i = 0; i < rows; ++i) {
      source.next(buffer_.claim().features.data());
      publish();
    }
    buffer_.flush();
    RIVULET_CHECK(batch_.fill(buffer_, rows) == rows, "wrong number of rows");
    batch_.release(buffer_);
  }
  [[nodiscard]] double sum() const { return sum_of(features_.numbers()); }

 private:
  static RowShape shape() { return {{1, 28, 28}, 1}; }
  void publish() {
    buffer_.claim().targets[0] = 1;
    buffer_.publish({{{0, 0}, {offset_, 0}}, {offset_ + 1, 0}, 0, 0});
    ++offset_;
  }
  buffer::RowBuffer buffer_{slots, shape()};
  std::vector<buffer::SlotIndex> taken_;
  Store features_{rows};
  std::vector<float> targets_ = std::vector<float>(rows);
  buffer::Batch batch_{features_.numbers(), targets_, shape(), rows};
  std::int64_t offset_ = 0;
};

struct Kernel {
  const char* name;
  int turns;  ///< of 256 rows per repetition: less than a millisecond, so that few are preempted
  std::function<void()> run;
  std::vector<double> ns = {};  ///< per row
};

double ns_per_row(const Kernel& kernel) {
  const double began = thread_cpu_seconds();
  for (int i = 0; i < kernel.turns; ++i) kernel.run();
  return (thread_cpu_seconds() - began) * 1e9 / (kernel.turns * static_cast<double>(rows));
}

/// Runs all kernels in turns. Returns the number of repetitions kept.
int measure(std::vector<Kernel>& kernels, int repetitions) {
  for (int i = 0; i < repetitions; ++i) {
    const long switches = involuntary_switches();
    std::vector<double> ns;
    for (const Kernel& kernel : kernels) ns.push_back(ns_per_row(kernel));
    if (involuntary_switches() != switches || i < repetitions / 10)
      continue;  // the first repetitions warm up
    for (std::size_t k = 0; k < kernels.size(); ++k) kernels[k].ns.push_back(ns[k]);
  }
  return static_cast<int>(kernels[0].ns.size());
}

void report_ratio(const char* what, const Kernel& ours, const Kernel& other) {
  fmt::print("{:44} {}\n", what, spread(ratios(ours.ns, other.ns), "x"));
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 2000;
  Source bare_source;
  Source our_source;
  Bare bare;
  Ours ours;
  std::vector<Kernel> kernels{{"boost ring, numbers, one way", 64, [&] { bare.one_ring(); }},
                              {"bare, numbers there and back", 64, [&] { bare.numbers(); }},
                              {"ours, numbers there and back", 64, [&] { ours.numbers(); }},
                              {"bare, with rows", 4, [&] { bare.whole_rows(bare_source); }},
                              {"ours, with rows", 4, [&] { ours.whole_rows(our_source); }}};
  const int kept = measure(kernels, repetitions);
  RIVULET_CHECK(bare.sum() == ours.sum(), "the copied rows differ");
  fmt::print("{} of {} repetitions kept\n", kept, repetitions);
  for (const Kernel& kernel : kernels) fmt::print("{:44} {}\n", kernel.name, spread(kernel.ns, "ns per row"));
  report_ratio("ours of bare, numbers", kernels[2], kernels[1]);
  report_ratio("ours of one ring one way", kernels[2], kernels[0]);
  report_ratio("ours of bare, with rows", kernels[4], kernels[3]);
  return 0;
}
