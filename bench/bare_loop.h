#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "core/time.h"

namespace rivulet::bench {

/// The training loop that one would write with LibTorch alone: LeNet-5, cross entropy, SGD with momentum.
/// Written well: pooling before ReLU and channels_last, as the product's model is, and the rows are tensors
/// already. Behind a door of its own: LibTorch's headers bring another fmt. Owner: one thread.
class BareLoop {
 public:
  /// Walks through these rows of 28 x 28, `batch` at a time; their number is a multiple of it.
  BareLoop(std::span<const float> features, std::span<const float> targets, std::size_t batch);
  ~BareLoop();
  BareLoop(const BareLoop&) = delete;
  BareLoop& operator=(const BareLoop&) = delete;
  /// CPU of this thread, over so long.
  double us_per_row(Duration length);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::bench
