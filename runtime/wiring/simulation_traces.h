#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/wiring/simulate.h"

namespace rivulet::runtime {

/// Makes the streams of a group by name, one trace per device:
///   constant:RATE      the same rate for all
///   S1 S2 S1' S2'      the stream sets of ScaDLES (Tyagi and Swany 2022, table I): a constant rate for each
///                      device, drawn uniformly with mean 38 and deviation 24 (S1) or 300 and 112 (S2), or
///                      normally with 64 and 24 (S1') or 256 and 28 (S2'); minimum 1 row/s
///   diurnal:MEAN[,SECONDS]  between 0.2 and 1.8 times the mean over a day of SECONDS (default 600), with a
///                      time zone for each device
///   bursty:MEAN[,SECONDS]   silent, then five times the mean for about SECONDS (default 2); bursts cover
///                      20 % of the time
///   recorded:FILE[,FILE...]  lines `second,rate`; a list shorter than the group is repeated
/// A drawn trace covers `seconds`; its last rate continues. Pure except for `recorded`: the same seed gives
/// the same traces, and the trace of a device does not depend on the group's size. Errors: usage (names the
/// invalid word, or file and line).
Result<std::vector<RateTrace>> make_traces(const std::string& name, std::size_t devices, std::uint64_t seed,
                                           double seconds);

/// Parses lines `second,rate` with ascending seconds; ignores empty lines, lines that begin with # and a
/// header in words. Errors: usage ("NAME:LINE: reason", where NAME is `name`).
Result<RateTrace> parse_recorded_trace(const std::string& text, const std::string& name);

}  // namespace rivulet::runtime
