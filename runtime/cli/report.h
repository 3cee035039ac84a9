#pragma once
#include <iosfwd>
#include <string>

#include "runtime/cli/command.h"
#include "runtime/status/summary.h"

namespace rivulet::runtime::cli {

/// Prints a readable summary: a line per device, then the group.
void print_summary(const Summary& summary, std::ostream& out);
/// "reached 90 % after 6.1 s, 95 % after 14 s"; empty if no level was reached.
std::string times_to_accuracy(const Summary& summary);
/// Synchronization traffic, absolute and relative to the bytes of the rows; empty if nothing was trained.
std::string sync_cost(const Summary& summary);

/// Merges the devices' summaries into one of the group (group-wide figures are the same in all). Different
/// digests after the same round clear parameters_equal; devices that stopped in different rounds may differ.
Summary merge_summaries(const std::vector<Summary>& parts);

}  // namespace rivulet::runtime::cli
