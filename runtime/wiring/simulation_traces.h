#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/wiring/simulate.h"

namespace rivulet::runtime {

/// The streams of a group by name, one trace per device:
///   constant:RATE      the same rate everywhere
///   S1 S2 S1' S2'      the stream sets of ScaDLES (Tyagi and Swany 2022, table I): each device's rate is
///                      constant and drawn once, uniform with mean 38 and deviation 24 (S1) or 300 and 112
///                      (S2), normal with 64 and 24 (S1') or 256 and 28 (S2'); never below 1 row/s
///   diurnal:MEAN[,SECONDS]  between 0.2 and 1.8 times the mean over a day of SECONDS (default 600), every
///                      device in its own time zone
///   bursty:MEAN[,SECONDS]   silent, then five times the mean for about SECONDS (default 2); a fifth of the
///                      time
///   recorded:FILE[,FILE...]  lines `second,rate`; fewer files than devices are repeated
/// A drawn trace covers `seconds`; its last rate holds from there. Pure but for `recorded`: same seed, same
/// traces, and a device's does not depend on how many there are. Errors: usage (names the word, or file and
/// line).
Result<std::vector<RateTrace>> make_traces(const std::string& name, std::size_t devices, std::uint64_t seed,
                                           double seconds);

/// Lines `second,rate`, seconds ascending; empty lines and those that begin with # are passed over, a first
/// line of words is a header. `name` is what errors call it. Errors: usage (NAME:LINE: what is wrong).
Result<RateTrace> parse_recorded_trace(const std::string& text, const std::string& name);

}  // namespace rivulet::runtime
