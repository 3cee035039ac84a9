#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "runtime/config/value.h"

namespace rivulet::runtime {

namespace {

struct Unit {
  std::string_view name;
  std::uint64_t size;
};
// Largest first: rendering takes the first unit that divides the value.
constexpr std::array<Unit, 6> times{{{"h", 3'600'000'000'000},
                                     {"m", 60'000'000'000},
                                     {"s", 1'000'000'000},
                                     {"ms", 1'000'000},
                                     {"us", 1'000},
                                     {"ns", 1}}};
constexpr std::array<Unit, 10> sizes{{{"B", 1},
                                      {"kB", 1'000},
                                      {"KB", 1'000},
                                      {"MB", 1'000'000},
                                      {"GB", 1'000'000'000},
                                      {"KiB", 1ULL << 10U},
                                      {"MiB", 1ULL << 20U},
                                      {"GiB", 1ULL << 30U},
                                      {"TB", 1'000'000'000'000},
                                      {"TiB", 1ULL << 40U}}};
constexpr double largest = 9.0e18;

/// Splits "1.5 s" into 1.5 and "s". False unless it begins with a number >= 0.
bool split(std::string_view text, double& amount, std::string_view& unit) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return false;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), amount, std::chars_format::fixed);
  if (error != std::errc()) return false;
  unit = text.substr(static_cast<std::size_t>(end - text.data()));
  while (!unit.empty() && unit.front() == ' ') unit.remove_prefix(1);
  return true;
}

template <std::size_t n>
double size_of(const std::array<Unit, n>& units, std::string_view name) {
  for (const auto& unit : units) {
    if (unit.name == name) return static_cast<double>(unit.size);
  }
  return 0;
}

}  // namespace

Result<Duration> parse_duration(const std::string& text) {
  double amount = 0;
  std::string_view unit;
  const bool parts = split(text, amount, unit);
  const double size = parts ? size_of(times, unit) : 0;
  if (size == 0 || amount * size > largest) {
    return Error{ErrorCode::invalid_config, "'" + text + "' is not a duration such as 100ms, 5s or 2m"};
  }
  return Duration(static_cast<std::int64_t>(std::llround(amount * size)));
}

Result<std::uint64_t> parse_bytes(const std::string& text) {
  double amount = 0;
  std::string_view unit;
  const bool parts = split(text, amount, unit);
  const double size = !parts ? 0 : unit.empty() ? 1 : size_of(sizes, unit);
  if (size == 0 || amount * size > largest) {
    return Error{ErrorCode::invalid_config, "'" + text + "' is not a size such as 512 KiB, 1 GiB or 1000000"};
  }
  return static_cast<std::uint64_t>(std::llround(amount * size));
}

std::string render_duration(Duration d) {
  const auto count = static_cast<std::uint64_t>(d.count());
  if (count == 0) return "0s";
  for (const auto& unit : times) {
    if (count % unit.size == 0) return std::to_string(count / unit.size) + std::string(unit.name);
  }
  return std::to_string(count) + "ns";
}

}  // namespace rivulet::runtime
