#include "runtime/wiring/simulation_traces.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <numbers>
#include <optional>
#include <sstream>
#include <string_view>

#include "core/rng.h"
#include "runtime/process/whole_file.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t trace_file_max = std::size_t{64} << 20U;
constexpr double changes_max = 2e7;  ///< rate changes of all devices together: about 300 MB
constexpr int day_steps = 48;
constexpr double burst_height = 5;  // times the mean, so bursts cover 20 % of the time
constexpr double slowest_rate = 1;  // a lower drawn rate would leave a device without a stream

Error wrong(std::string message) {
  return {ErrorCode::usage, std::move(message)};
}

std::optional<double> number_of(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r' || text.back() == '\t'))
    text.remove_suffix(1);
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(out)) return std::nullopt;
  return out;
}

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

/// Mean and deviation of a published stream set.
struct StreamSet {
  std::string_view name;
  bool uniform = false;
  double mean = 0;
  double deviation = 0;
};
constexpr std::array<StreamSet, 4> stream_sets{
    {{"S1", true, 38, 24}, {"S2", true, 300, 112}, {"S1'", false, 64, 24}, {"S2'", false, 256, 28}}};

RateTrace drawn_from(const StreamSet& set, Rng& rng) {
  // Uniform over mean ± sqrt(3) standard deviations.
  const double spread = set.uniform ? std::sqrt(3.0) * (2 * rng.uniform() - 1) : rng.normal();
  return {{0, std::max(slowest_rate, set.mean + set.deviation * spread)}};
}

RateTrace diurnal(double mean, double day, double seconds, Rng& rng) {
  const double zone = rng.uniform();
  RateTrace trace;
  for (int i = 0; static_cast<double>(i) * day / day_steps < seconds || i == 0; ++i) {
    const double phase = static_cast<double>(i % day_steps) / day_steps + zone;
    trace.emplace_back(i * day / day_steps, mean * (1 + 0.8 * std::sin(2 * std::numbers::pi * phase)));
  }
  return trace;
}

/// Exponential lengths avoid resonance with the rounds.
RateTrace bursty(double mean, double burst, double seconds, Rng& rng) {
  RateTrace trace;
  double at = 0;
  while (at < seconds || trace.empty()) {
    const auto length = [&](double average) {
      return std::max(0.01, -average * std::log(1 - rng.uniform()));
    };
    trace.emplace_back(at, 0);
    at += length(burst * (burst_height - 1));
    trace.emplace_back(at, mean * burst_height);
    at += length(burst);
  }
  return trace;
}

Result<std::vector<RateTrace>> recorded(const std::string& files, std::size_t devices) {
  std::vector<RateTrace> read;
  for (const std::string& file : words_of(files)) {
    const auto bytes = read_whole_file(file, trace_file_max);
    if (!bytes) return wrong("--trace recorded: " + bytes.error().message);
    const std::string text(reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size());
    auto trace = parse_recorded_trace(text, file);
    if (!trace) return trace.error();
    read.push_back(std::move(trace).value());
  }
  if (read.empty())
    return wrong("--trace recorded: no file given; expected recorded:FILE, such as recorded:day.csv");
  std::vector<RateTrace> all;
  all.reserve(devices);
  for (std::size_t i = 0; i < devices; ++i) all.push_back(read[i % read.size()]);
  return all;
}

/// Parses "RATE" or "RATE,SECONDS" after a name, both above 0.
Result<std::array<double, 2>> shape_of(const std::string& kind, const std::string& text, double second) {
  const auto words = words_of(text);
  std::array<double, 2> out{0, second};
  const std::size_t most = kind == "constant" ? 1 : 2;
  for (std::size_t i = 0; i < words.size() && i < most; ++i) {
    const auto value = number_of(words[i]);
    if (!value || *value <= 0)
      return wrong(fmt::format("--trace {}: '{}' is not a number above 0", kind, words[i]));
    out.at(i) = *value;
  }
  if (words.empty() || words.size() > most)
    return wrong(fmt::format(
        "--trace {0} needs {1}", kind,
        most == 1 ? "one rate, such as constant:50"
                  : fmt::format("a mean and optional seconds, such as {}:50,{:g}", kind, second)));
  return out;
}

/// Limits the number of changes, because a day of a millisecond would exhaust memory.
Status check_changes(const std::string& kind, double length, double seconds, std::size_t devices) {
  const double each =
      kind == "diurnal" ? day_steps * seconds / length : 2 * seconds / (burst_height * length);
  if (each * static_cast<double>(devices) <= changes_max) return ok();
  return wrong(fmt::format("--trace {}: {:g} changes of rate in {:g} s on {} devices; the maximum is {:g}",
                           kind, each * static_cast<double>(devices), seconds, devices, changes_max));
}

}  // namespace

Result<RateTrace> parse_recorded_trace(const std::string& text, const std::string& name) {
  RateTrace trace;
  std::istringstream in(text);
  int line = 0;
  for (std::string words; std::getline(in, words);) {
    ++line;
    if (words.empty() || words == "\r" || words.front() == '#') continue;
    const auto comma = words.find(',');
    const auto from = number_of(words.substr(0, comma));
    const auto rate = comma == std::string::npos ? std::nullopt : number_of(words.substr(comma + 1));
    if (!from && !rate && comma != std::string::npos && trace.empty() && line == 1) continue;  // header
    const auto at = fmt::format("{}:{}: ", name, line);
    if (!from || !rate || *from < 0 || *rate < 0)
      return wrong(at + fmt::format("'{}' is not SECOND,RATE with both >= 0", words));
    if (!trace.empty() && *from <= trace.back().first)
      return wrong(at + "the seconds of a trace must increase");
    trace.emplace_back(*from, *rate);
  }
  if (trace.empty()) return wrong(name + ": contains no line SECOND,RATE");
  return trace;
}

Result<std::vector<RateTrace>> make_traces(const std::string& name, std::size_t devices, std::uint64_t seed,
                                           double seconds) {
  const auto colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : name.substr(colon + 1);
  if (kind == "recorded") return recorded(rest, devices);
  const auto* set = std::find_if(stream_sets.begin(), stream_sets.end(),
                                 [&](const StreamSet& s) { return s.name == name; });
  const bool shaped = kind == "constant" || kind == "diurnal" || kind == "bursty";
  if (set == stream_sets.end() && !shaped)
    return wrong(
        fmt::format("--trace '{}' must be one of: constant:RATE, S1, S2, S1', S2', diurnal:MEAN, "
                    "bursty:MEAN, recorded:FILE",
                    name));
  const auto shape = shaped ? shape_of(kind, rest, kind == "diurnal" ? 600 : 2) : std::array<double, 2>{};
  if (!shape) return shape.error();
  const auto [mean, length] = shape.value();
  if (kind == "diurnal" || kind == "bursty")
    if (auto fits = check_changes(kind, length, seconds, devices); !fits) return fits.error();
  std::vector<RateTrace> all;
  for (std::size_t i = 0; i < devices; ++i) {
    Rng rng = Rng::derive(seed, "trace " + kind, i);
    if (!shaped) all.push_back(drawn_from(*set, rng));
    if (kind == "constant") all.push_back({{0, mean}});
    if (kind == "diurnal") all.push_back(diurnal(mean, length, seconds, rng));
    if (kind == "bursty") all.push_back(bursty(mean, length, seconds, rng));
  }
  return all;
}

}  // namespace rivulet::runtime
