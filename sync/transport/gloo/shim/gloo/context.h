// Replaces a Gloo header that LibTorch's wheel lacks, with only what ProcessGroupGloo.hpp needs to compile.
// It keeps contexts by pointer and calls setTimeout in an inline function that this program does not use.
#pragma once
#include <chrono>
#include <memory>

namespace gloo {

class Context {
 public:
  void setTimeout(std::chrono::milliseconds timeout);
};

}  // namespace gloo
