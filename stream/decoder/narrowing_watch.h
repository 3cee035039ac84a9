#pragma once
#include <optional>
#include <span>
#include <vector>

#include "stream/decoder.h"

namespace rivulet::stream {

/// Compares each value with the previous one of its feature, as in the record and as rounded to 32 bits. One
/// thread.
class NarrowingWatch {
 public:
  explicit NarrowingWatch(std::size_t columns) : features_(columns), before_(columns) {}
  void set_scale(std::size_t column, double scale) noexcept { features_[column].scale = scale; }
  void look(std::size_t column, double x, float narrow) noexcept;
  [[nodiscard]] std::span<const Narrowing> features() const noexcept { return features_; }

 private:
  struct Before {
    double x = 0;
    float narrow = 0;
    bool any = false;
  };
  std::vector<Narrowing> features_;
  std::vector<Before> before_;
};

}  // namespace rivulet::stream
