#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/config/config.h"

namespace rivulet::runtime::cli {

/// Counts labels as written in the records, and derives the list of classes. Counts up to 10 000 different
/// labels separately and the rows of all others together. One thread.
class LabelCounts {
 public:
  /// `text`: the label is not numeric in its record and not in a configured list.
  void add(std::string_view label, bool text = false);
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  struct Share {
    std::string label;
    std::uint64_t rows = 0;
  };
  /// Returns labels and their rows, most frequent first; ties in the order of a class list.
  [[nodiscard]] std::vector<Share> shares() const;
  /// Returns the distinct labels: numbers by value, then text.
  [[nodiscard]] std::vector<std::string> in_order() const;
  /// Describes the baseline: the majority class and its share. Empty without labels.
  [[nodiscard]] std::string largest() const;
  /// Table for the user: rows and share of each label, the baseline, and the key to write if the configured
  /// list does not match these labels. Only for a classification. Empty without labels.
  [[nodiscard]] std::string describe(const Config& config) const;

 private:
  [[nodiscard]] std::string advice(const Config& config) const;
  [[nodiscard]] std::string list_advice(const Config& config) const;
  std::map<std::string, std::uint64_t, std::less<>> counts_;
  std::uint64_t rows_ = 0;
  std::uint64_t texts_ = 0;
  std::uint64_t others_ = 0;  ///< rows with untracked labels
};

/// Returns a TOML list of labels.
std::string toml_list(const std::vector<std::string>& labels);
/// Returns the number if the whole label is numeric; nullopt for text.
std::optional<double> label_number(const std::string& label);

}  // namespace rivulet::runtime::cli
