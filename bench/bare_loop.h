#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "core/time.h"

namespace rivulet::bench {

/// A training loop with LibTorch alone: LeNet-5, cross entropy, SGD with momentum. Optimized like the
/// product's model, with pooling before ReLU and channels_last; the rows are already tensors. A separate
/// object, because LibTorch's headers include another fmt. Owner: one thread.
class BareLoop {
 public:
  /// Trains on rows of 28 x 28, `batch` at a time. Their number must be a multiple of `batch`.
  BareLoop(std::span<const float> features, std::span<const float> targets, std::size_t batch);
  ~BareLoop();
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;
  /// Trains for `length`. Returns the CPU time of this thread per row, in microseconds.
  double us_per_row(Duration length);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::bench
