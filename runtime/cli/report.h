#pragma once
#include <iosfwd>
#include <string>

#include "runtime/cli/command.h"
#include "runtime/status/summary.h"

namespace rivulet::runtime::cli {

/// A summary for people: a line per device, then the group.
void print_summary(const Summary& summary, std::ostream& out);
/// "reached 90 % after 6.1 s, 95 % after 14 s"; empty when no level was reached.
std::string times_to_accuracy(const Summary& summary);
/// Bytes of agreeing beside those of shipping the rows; empty: nothing was trained.
std::string cost_of_agreeing(const Summary& summary);

/// One summary of a group out of those of its devices (which measure the group's numbers alike). Different
/// digests after the same round make parameters_equal false; devices that were stopped in different rounds
/// differ rightly.
Summary merge_summaries(const std::vector<Summary>& parts);

}  // namespace rivulet::runtime::cli
