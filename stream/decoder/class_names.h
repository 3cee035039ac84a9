#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rivulet::stream {

/// Text labels of a classification; the class of a label is its index in the configured list.
class ClassNames {
 public:
  /// `names` must be distinct, 2^24 at most.
  explicit ClassNames(const std::vector<std::string>& names);
  [[nodiscard]] bool empty() const noexcept { return sorted_.empty(); }
  /// Returns the class of a label; nullopt if it is not in the list. Does not allocate; binary search.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view label) const noexcept;

 private:
  std::vector<std::pair<std::string, std::uint32_t>> sorted_;
};

}  // namespace rivulet::stream
