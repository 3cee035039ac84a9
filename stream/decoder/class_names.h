#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rivulet::stream {

/// The labels of a classification as text; a label's class is its place in the configured list.
class ClassNames {
 public:
  /// Of names that are all different, 2^24 at most.
  explicit ClassNames(const std::vector<std::string>& names);
  [[nodiscard]] bool empty() const noexcept { return sorted_.empty(); }
  /// The class of a label; nullopt if it is not in the list. Allocates nothing; log2 of the list comparisons.
  [[nodiscard]] std::optional<std::uint32_t> find(std::string_view label) const noexcept;

 private:
  std::vector<std::pair<std::string, std::uint32_t>> sorted_;
};

}  // namespace rivulet::stream
