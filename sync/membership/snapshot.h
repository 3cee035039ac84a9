#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "sync/membership/fold.h"

/// The fold as text, for SNAP records. Private to membership/. Left out is what only belongs to those who
/// read it: counts of ignored records (they depend on the build) and addresses (nobody who begins needs
/// them).
namespace rivulet::sync::membership {

/// A SNAP is due once this many offsets lie behind the last.
inline constexpr std::int64_t snap_every = 1000;

/// Equal folds give equal texts.
std::string snapshot_of(const Fold& fold);
/// It holds what this fold comes to.
bool is_snapshot_of(const Snap& snap, const Fold& fold);
std::string snapshot_hash(const std::string& text);

/// The fold that a SNAP carries, if its hash and every field are right. It may be believed only by who cannot
/// know better: its log begins behind the records that it stands for.
std::optional<Fold> fold_of(const Snap& snap);

}  // namespace rivulet::sync::membership
