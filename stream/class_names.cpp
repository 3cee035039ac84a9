#include <algorithm>

#include "stream/decoder/class_names.h"

namespace rivulet::stream {

ClassNames::ClassNames(const std::vector<std::string>& names) {
  sorted_.reserve(names.size());
  for (std::uint32_t i = 0; i < names.size(); ++i) sorted_.emplace_back(names[i], i);
  std::sort(sorted_.begin(), sorted_.end());
}

std::optional<std::uint32_t> ClassNames::find(std::string_view label) const noexcept {
  const auto before = [](const auto& entry, std::string_view text) { return entry.first < text; };
  const auto at = std::lower_bound(sorted_.begin(), sorted_.end(), label, before);
  if (at == sorted_.end() || at->first != label) return std::nullopt;
  return at->second;
}

}  // namespace rivulet::stream
