#include "runtime/wiring/simulation_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace rivulet::runtime {
namespace {

Error limit_error(std::string message) {
  return {ErrorCode::usage, std::move(message)};
}

/// Also false for NaN.
bool within(double value, double low, double high) {
  return value >= low && value <= high;
}

Status check_seconds(const std::string& what, double seconds) {
  if (within(seconds, 0, simulated_seconds_max)) return ok();
  return limit_error(fmt::format("{}: {:g} s is not in the range of a simulation, 0 to {:g} s", what, seconds,
                                 simulated_seconds_max));
}

Status check_speed(const std::string& what, double per_second, const char* unit) {
  if (per_second >= simulated_speed_min) return ok();
  return limit_error(
      fmt::format("{}: {:g} {} is below the minimum of {:g}", what, per_second, unit, simulated_speed_min));
}

Status check_link(const std::string& what, const sync::MemoryNetwork::Link& link) {
  if (auto fits = check_seconds(what, to_seconds(link.latency)); !fits) return fits;
  return link.bytes_per_second == 0 ? ok() : check_speed(what, link.bytes_per_second, "bytes/s");
}

Status check_profile(const std::string& what, const devices::DeviceProfile& profile) {
  if (auto fits = check_seconds(what, to_seconds(profile.fixed)); !fits) return fits;
  return check_speed(what, profile.rows_per_second, "rows/s");
}

Status check_streams(const SimulateOptions& options) {
  bool silent = true;
  for (const RateTrace& trace : options.rates)
    for (const auto& [from, rate] : trace) {
      if (!within(from, 0, simulated_seconds_max) || !within(rate, 0, simulated_rate_max))
        return limit_error(fmt::format(
            "{:g} rows/s from second {:g} on: a rate must be 0 to {:g} rows/s and begin at second 0 to {:g}",
            rate, from, simulated_rate_max, simulated_seconds_max));
      if (rate > 0 && rate * simulated_seconds_max < 1)
        return limit_error(
            fmt::format("{:g} rows/s is less than one row in {:g} s, the maximum time of a simulation", rate,
                        simulated_seconds_max));
      silent = silent && rate == 0;
    }
  if (silent && !options.rates.empty() && options.stop_after.seconds <= 0)
    return limit_error("every stream is silent, so --stop-after rows or rounds is never reached");
  return ok();
}

Status check_count(const char* what, std::size_t given, std::size_t devices) {
  if (given <= devices) return ok();
  return limit_error(fmt::format("{} names {} devices, but the group has {}", what, given, devices));
}

Status check_counts(const SimulateOptions& options, std::size_t devices) {
  if (auto fits = check_count("--rates", options.rates.size(), devices); !fits) return fits;
  if (auto fits = check_count("--profile", options.profiles.size(), devices); !fits) return fits;
  return check_count("--own-link", options.own_links.size(), devices);
}

}  // namespace

Status check_scenario(const SimulateOptions& options, std::size_t devices) {
  if (auto fits = check_counts(options, devices); !fits) return fits;
  if (auto fits = check_seconds("--stop-after", options.stop_after.seconds); !fits) return fits;
  if (auto fits = check_streams(options); !fits) return fits;
  if (auto fits = check_profile("--profile-fixed, --profile-rate", options.profile); !fits) return fits;
  if (auto fits = check_link("--latency, --bandwidth", options.link); !fits) return fits;
  for (const auto& profile : options.profiles)
    if (auto fits = check_profile("--profile", profile); !fits) return fits;
  for (const auto& link : options.own_links)
    if (auto fits = check_link("--own-link", link); !fits) return fits;
  for (const Fault& fault : options.faults) {
    if (auto fits = check_seconds(fault.place, fault.at_s); !fits) return fits;
    if (auto fits = check_link(fault.place, fault.link); !fits) return fits;
  }
  return ok();
}

}  // namespace rivulet::runtime
