#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/status/page/node_report.h"

/// Private to page/: HTML for numbers, tables and tiles. Pure.
namespace rivulet::runtime::html {

using Whole = NodeReport::Whole;
using Number = NodeReport::Number;

std::string escaped(std::string_view text);
/// 1234567 -> "1 234 567", with no-break spaces.
std::string grouped(const std::string& digits);

// Format a number; "–" if it is missing.
std::string count(Whole value);
std::string bytes(Whole value);
std::string decimal(Number value, int digits);
std::string tenths(Number value);
std::string ten_thousandths(Number value);
std::string seconds(Number value);
std::string milliseconds(Number value);
std::string percent(Number value);
std::string number(Number value);                    ///< four significant digits
std::string each(const NodeReport::Counts& counts);  ///< always empty: shown in a separate table

Number as_number(Number value);
Number as_number(Whole value);
Number as_number(const NodeReport::Counts& counts);

/// A value with its caption. The script for the page's charts finds it by `key`.
struct Cell {
  const char* key;
  const char* caption;
  std::string shown;  ///< HTML
  Number value;
};

/// The values of core/metrics.def.
struct Cells {
  const NodeReport& of;
#define RIVULET_VALUE(key, type, first, form, caption, ...) \
  Cell key() const { return {#key, caption, form(of.key), as_number(of.key)}; }
#include "core/metrics.def"
};
struct Captions {
#define RIVULET_VALUE(key, type, first, form, caption, ...) static constexpr const char* key = caption;
#include "core/metrics.def"
};

/// A box of related values. The page has four boxes, so that they fill every row of the layout.
class Tiles {
 public:
  explicit Tiles(const char* heading);
  void add(const char* key, const char* name, const std::string& shown);
  void add(const Cell& cell) { add(cell.key, cell.caption, cell.shown); }
  void add_series(const Cell& cell);  ///< adds a charted value
  [[nodiscard]] std::string html() const { return html_ + "</dl></section>\n"; }

 private:
  std::string html_;
};

/// A table. A column contains words (left-aligned, wrapped) or numbers (right-aligned).
class Table {
 public:
  Table(const std::string& id, const std::vector<std::pair<std::string, bool>>& columns);
  /// `cells`: HTML.
  void row(const std::vector<std::string>& cells, std::string_view row_class = "");
  [[nodiscard]] std::string html() const { return html_ + "</tbody></table></div>\n"; }

 private:
  std::string html_;
  std::vector<bool> words_;
};

}  // namespace rivulet::runtime::html
