#pragma once
#include <string>
#include <vector>

#include "sync/membership/fold.h"
#include "tests/fuzz/target.h"

/// Logs of the control topic.
namespace rivulet::fuzz {

inline const std::string fuzzed_job = "pumps";
/// Offsets have holes, as a broker's have.
inline constexpr std::int64_t offset_step = 3;

/// Two devices meet, train, save, one comes back, all end: every type of record at least once. Folded at
/// offsets 0, 3, 6, ... every one of them counts.
std::vector<sync::membership::ControlRecord> records_of_a_life();

/// What must hold of every fold, whatever was said: tables within their bounds, a view that hangs together.
void check_fold(const sync::membership::Fold& fold);

/// What never goes back from one record to the next of one run.
void check_goes_on(const sync::membership::Fold& before, const sync::membership::Fold& after);

/// A device that begins with a snapshot of `fold` stands where it stands.
void check_snapshot(const sync::membership::Fold& fold);

}  // namespace rivulet::fuzz
