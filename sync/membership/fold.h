#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sync/membership/records.h"

namespace rivulet::sync::membership {

/// A device as the log knows it.
struct DeviceEntry {
  std::int64_t session = -1;             ///< offset of its latest HELLO
  Hello hello;
  std::optional<Ready> ready;            ///< of this session, for view > closed view
};

/// The view the log has closed last.
struct ClosedView {
  std::uint64_t number = 0;              ///< 0 = none yet
  std::uint64_t token = 0;               ///< offset of the accepted CLOSE
  std::vector<std::string> members;      ///< sorted; index = rank
  std::map<std::string, std::int64_t> sessions;  ///< of the members when it was closed
};

/// The state of the group as a pure function of a log prefix: equal prefixes, equal folds, on every device.
struct Fold {
  std::map<std::string, DeviceEntry> devices;
  ClosedView view;
  std::map<std::pair<std::uint64_t, std::string>, std::vector<std::byte>> addresses;  ///< (token, key), current view only
  std::uint64_t ignored = 0;             ///< records that were void, stale or invalid
};

/// What must hold for a CLOSE of fold.view.number + 1: exactly `devices` live READYs for it, equal configuration
/// hashes, no partition claimed twice. Empty = it may close; otherwise for whom or what it waits.
std::string why_not_closable(const Fold& fold, std::uint32_t devices);

/// Applies one record read at `offset`. Pure apart from `fold`.
void apply(Fold& fold, std::int64_t offset, const ControlRecord& record);

/// True while every member of the closed view still has the session it was closed with.
bool view_intact(const Fold& fold);

}  // namespace rivulet::sync::membership
