#include "sync/controllers/budget.h"

#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace rivulet::sync::policy {
namespace {

constexpr std::array units{std::pair{std::string_view("B"), 1.0}, std::pair{std::string_view("kB"), 1e3},
                           std::pair{std::string_view("MB"), 1e6}, std::pair{std::string_view("GB"), 1e9},
                           std::pair{std::string_view("TB"), 1e12}};
constexpr std::array times{std::pair{std::string_view("s"), 1.0}, std::pair{std::string_view("minute"), 60.0},
                           std::pair{std::string_view("hour"), 3600.0},
                           std::pair{std::string_view("day"), 86400.0},
                           std::pair{std::string_view("month"), 30 * 86400.0}};

double value_of(const auto& names, std::string_view name) {
  for (const auto& [known, value] : names)
    if (known == name) return value;
  return 0;
}

}  // namespace

std::optional<Budget> budget_of(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !std::isfinite(number) || number <= 0) return std::nullopt;
  std::string_view rest = text.substr(static_cast<std::size_t>(end - text.data()));
  if (!rest.empty() && rest.front() == ' ') rest.remove_prefix(1);
  if (rest == "of stream") return Budget{.of_stream = number};
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const double unit = value_of(units, rest.substr(0, slash));
  const double time = value_of(times, rest.substr(slash + 1));
  if (unit == 0 || time == 0) return std::nullopt;
  const double rate = number * unit / time;
  if (!std::isfinite(rate) || rate <= 0) return std::nullopt;
  return Budget{.bytes_per_second = rate};
}

}  // namespace rivulet::sync::policy
