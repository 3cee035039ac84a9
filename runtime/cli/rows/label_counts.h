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

/// How often each label was seen, as the records have it, and which list of classes they want. Remembers
/// 10 000 different ones, of others how many rows had them. One thread.
class LabelCounts {
 public:
  /// `text`: it is not a number in its record, and there is no list that it could be in.
  void add(std::string_view label, bool text = false);
  [[nodiscard]] std::uint64_t rows() const noexcept { return rows_; }
  struct Share {
    std::string label;
    std::uint64_t rows = 0;
  };
  /// The most frequent first, equally frequent ones in the order of a list of classes.
  [[nodiscard]] std::vector<Share> shares() const;
  /// Every label once: numbers by their value and before text.
  [[nodiscard]] std::vector<std::string> in_order() const;
  /// "ok has 62.0 % of 500 labels"; empty: none was seen.
  [[nodiscard]] std::string largest() const;
  /// For a person: each label with rows and share, what the largest one means, and below it the key to write
  /// if these labels want another list than the configuration's. Of a classification. Empty: none was seen.
  [[nodiscard]] std::string describe(const Config& config) const;

 private:
  [[nodiscard]] std::string advice(const Config& config) const;
  [[nodiscard]] std::string list_advice(const Config& config) const;
  std::map<std::string, std::uint64_t, std::less<>> counts_;
  std::uint64_t rows_ = 0;
  std::uint64_t texts_ = 0;
  std::uint64_t others_ = 0;  ///< rows whose label is beyond those remembered
};

/// A list of labels as TOML.
std::string toml_list(const std::vector<std::string>& labels);
/// The number that the whole of a label is; nullopt: it is text.
std::optional<double> label_number(const std::string& label);

}  // namespace rivulet::runtime::cli
