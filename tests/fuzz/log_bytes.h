#pragma once
#include <string>
#include <vector>

#include "sync/membership/fold.h"
#include "tests/fuzz/target.h"

/// Logs of the control topic.
namespace rivulet::fuzz {

inline const std::string fuzzed_job = "pumps";
/// Offsets have gaps, as in a broker.
inline constexpr std::int64_t offset_step = 3;

/// Two devices meet, train, save, one returns, all end: every type of record once or more. Folded at offsets
/// 0, 3, 6, ... all of them count.
std::vector<sync::membership::ControlRecord> records_of_a_life();

/// Invariants of every fold, for any records: bounded tables, a consistent view.
void check_fold(const sync::membership::Fold& fold);

/// Values that never decrease between two records of one run.
void check_goes_on(const sync::membership::Fold& before, const sync::membership::Fold& after);

/// A device that begins with a snapshot of `fold` has the same state.
void check_snapshot(const sync::membership::Fold& fold);

}  // namespace rivulet::fuzz
