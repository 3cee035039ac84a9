#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "sync/membership/fold.h"

/// The fold as text, for SNAP records. Private to membership/. Omits the counts of ignored records,
/// which depend on the build, and the addresses, which a starting device does not need.
namespace rivulet::sync::membership {

/// Number of offsets after the last SNAP at which the next one is due.
inline constexpr std::int64_t snap_every = 1000;

/// Equal folds give equal texts.
std::string snapshot_of(const Fold& fold);
/// Whether `snap` contains this fold.
bool is_snapshot_of(const Snap& snap, const Fold& fold);
std::string snapshot_hash(const std::string& text);

/// The fold of a SNAP, if its hash and all fields are valid. Only for a device whose log lacks the records
/// that it covers.
std::optional<Fold> fold_of(const Snap& snap);

}  // namespace rivulet::sync::membership
