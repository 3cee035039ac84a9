#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/wiring/simulate.h"

namespace rivulet::runtime {

/// Parses a script of faults, one per line, in order of time; empty lines and text after # are ignored:
///   at 120 kill b            the process is lost, as by kill -9
///   at 130 start b           a new process with an empty disk
///   at 150 stop c            requested to leave, as by SIGTERM
///   at 200 link a 1mbit      shared by all its sends and receives; kbit, mbit, gbit, or `free`
///   at 200 link a 1mbit 20ms  with this additional latency
/// A device is its number from 1, its letter (a = 1) or its id (device-02). Errors: usage ("NAME:LINE:
/// reason", where NAME is `name`; quotes the invalid word).
Result<std::vector<Fault>> parse_faults(const std::string& text, const std::string& name,
                                        std::size_t devices);
/// Errors: those of parse_faults(), usage (the file cannot be read).
Result<std::vector<Fault>> load_faults(const std::string& path, std::size_t devices);

/// Parses "1mbit" to bytes per second; "free" is 0 (unlimited). Errors: usage.
Result<double> parse_bandwidth(const std::string& text);

}  // namespace rivulet::runtime
