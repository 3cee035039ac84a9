#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

/// What a scrape says, against what somebody has worked out and typed.
namespace rivulet::testing {

/// Series without the prefix "rivulet_", as `name{label="value"}`, to numbers; buckets of histograms are left
/// out.
using MetricSheet = std::map<std::string, double>;

MetricSheet read_sheet(const std::string& scrape);

/// One of tests/support/metric_sheets/NAME.txt: lines `SERIES = VALUE` and `SERIES between VALUE and VALUE`;
/// a `#` begins a comment. Ends the program if there is none, or a line is no such line.
struct TypedSheet {
  std::vector<std::pair<std::string, double>> values;  ///< to ten digits, NaN is equal to NaN
  /// Known to the machine alone: each lies between these two.
  std::vector<std::pair<std::string, std::pair<double, double>>> between;
};

TypedSheet read_typed(const std::string& name);

/// One line for each series that is missing, is not typed, or has another value. Empty: all is as typed.
std::vector<std::string> differences(const MetricSheet& sheet, const TypedSheet& typed);

/// The same of two JSON texts, by the path of each value. Numbers are equal to ten digits, fractions to
/// seven, or between A and B where the text "A..B" is typed.
std::vector<std::string> json_differences(const std::string& json, const std::string& typed);

/// What a page shows, one line each in the order of the page: `TAG#ID TEXT` or `TAG TEXT` of its h1, h2, p,
/// dd, th, td and li, without the mark-up inside.
std::vector<std::string> cells_of(const std::string& html);

/// The names of metrics (core/metrics.def) that are typed.
std::set<std::string> names_in(const TypedSheet& typed);

}  // namespace rivulet::testing
