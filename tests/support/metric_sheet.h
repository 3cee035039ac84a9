#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// Compares a scrape with expected values computed by hand.
namespace rivulet::testing {

/// Series without the prefix "rivulet_", as `name{label="value"}` -> value; without histogram buckets.
using MetricSheet = std::map<std::string, double>;

MetricSheet read_sheet(const std::string& scrape);

/// One of tests/support/metric_sheets/NAME.txt: lines `SERIES = VALUE` and `SERIES between VALUE and VALUE`;
/// `#` begins a comment. Ends the program if it is missing or has an invalid line.
struct TypedSheet {
  std::vector<std::pair<std::string, double>> values;  ///< equal to ten digits; NaN equals NaN
  /// Values that depend on the machine: each must lie between these two.
  std::vector<std::pair<std::string, std::pair<double, double>>> between;
};

TypedSheet read_typed(const std::string& name);

/// One line per missing, unexpected or different series. Empty: all equal.
std::vector<std::string> differences(const MetricSheet& sheet, const TypedSheet& typed);

/// The same for two JSON texts, by the path of each value. Numbers are equal to ten digits, fractions to
/// seven, or between A and B where the sheet has "A..B".
std::vector<std::string> json_differences(const std::string& json, const std::string& typed);

/// Text of a page, one line each in page order: `TAG#ID TEXT` or `TAG TEXT` of its h1, h2, p, dd, th, td and
/// li, without inner mark-up.
std::vector<std::string> cells_of(const std::string& html);

/// Names of metrics (core/metrics.def) in the sheet.
std::set<std::string> names_in(const TypedSheet& typed);

}  // namespace rivulet::testing
