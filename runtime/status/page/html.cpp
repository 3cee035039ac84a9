#include "runtime/status/page/html.h"

#include <fmt/format.h>

namespace rivulet::runtime::html {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

std::string grouped(const std::string& digits) {
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0 && digits[i - 1] != '-') out += "&nbsp;";
    out += digits[i];
  }
  return out;
}

std::string count(Whole value) {
  return value ? grouped(std::to_string(*value)) : "–";
}

std::string decimal(Number value, int digits) {
  return value ? fmt::format("{:.{}f}", *value, digits) : "–";
}

std::string tenths(Number value) {
  return decimal(value, 1);
}

std::string ten_thousandths(Number value) {
  return decimal(value, 4);
}

std::string seconds(Number value) {
  return tenths(value) + "&nbsp;s";
}

std::string percent(Number value) {
  return value ? fmt::format("{:.1f}&nbsp;%", 100 * *value) : "–";
}

std::string milliseconds(Number value) {
  return value ? fmt::format("{:.1f}&nbsp;ms", 1000 * *value) : "–";
}

std::string bytes(Whole value) {
  double n = static_cast<double>(value.value_or(0));
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; n >= 1000 && unit + 1 < std::size(units); ++unit) n /= 1000;
  return fmt::format("{:.{}f}&nbsp;{}", n, unit == 0 ? 0 : 1, units[unit]);
}

std::string number(Number value) {
  return value ? fmt::format("{:.4g}", *value) : "–";
}

Number as_number(Number value) {
  return value;
}

Number as_number(Whole value) {
  return value ? Number(static_cast<double>(*value)) : std::nullopt;
}

std::string each(const NodeReport::Counts& /*counts*/) {
  return "";
}
Number as_number(const NodeReport::Counts& /*counts*/) {
  return std::nullopt;
}

Tiles::Tiles(const char* heading) : html_(fmt::format("<section><h2>{}</h2><dl>", heading)) {}

void Tiles::add(const char* key, const char* name, const std::string& shown) {
  html_ += fmt::format("<div><dt>{}</dt><dd id=\"{}\">{}</dd></div>", name, key, shown);
}

void Tiles::add_series(const Cell& cell) {
  html_ +=
      fmt::format("<div><dt>{0}</dt><dd id=\"{1}\" data-series=\"{0}\" data-value=\"{2}\">{3}</dd></div>",
                  cell.caption, cell.key, cell.value ? fmt::format("{}", *cell.value) : "", cell.shown);
}

Table::Table(const std::string& id, const std::vector<std::pair<std::string, bool>>& columns)
    : html_(fmt::format("<div class=\"scroll\"><table id=\"{}\"><thead><tr>", id)) {
  for (const auto& [name, words] : columns) {
    words_.push_back(words);
    html_ += fmt::format("<th{}>{}</th>", words ? " class=\"text\"" : "", name);
  }
  html_ += "</tr></thead><tbody>";
}

void Table::row(const std::vector<std::string>& cells, std::string_view row_class) {
  html_ += row_class.empty() ? "<tr>" : fmt::format("<tr class=\"{}\">", row_class);
  for (std::size_t i = 0; i < cells.size(); ++i)
    html_ += fmt::format("<td{}>{}</td>", words_[i] ? " class=\"text\"" : "", cells[i]);
  html_ += "</tr>";
}

}  // namespace rivulet::runtime::html
