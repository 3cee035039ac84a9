#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/wiring/simulate.h"

namespace rivulet::runtime {

/// A script of faults, one a line, in order of time; empty lines and what is behind # are passed over:
///   at 120 kill b            its process is gone, as by kill -9
///   at 130 start b           a new one, with nothing on its disk
///   at 150 stop c            asked to leave, as by SIGTERM
///   at 200 link a 1mbit      everything it sends and receives shares this; kbit, mbit, gbit, or `free`
///   at 200 link a 1mbit 20ms  and takes this longer
/// A device is its number from 1, its letter (a = 1) or its id (device-02). `name` is what errors call the
/// script. Errors: usage (NAME:LINE: what is wrong, with the word).
Result<std::vector<Fault>> parse_faults(const std::string& text, const std::string& name,
                                        std::size_t devices);
/// Errors: those of parse_faults(), usage (the file cannot be read).
Result<std::vector<Fault>> load_faults(const std::string& path, std::size_t devices);

/// "1mbit" -> bytes per second; "free" -> 0 (endless). Errors: usage.
Result<double> parse_bandwidth(const std::string& text);

}  // namespace rivulet::runtime
