#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "core/shared_list.h"
#include "core/stamp.h"

namespace rivulet::sync {

/// The members of the group, by rank. `token` is globally unique (the offset of the accepted CLOSE).
struct ViewSpec {
  std::uint64_t number = 0;
  std::uint64_t token = 0;
  SharedList<std::string> members;  ///< device ids, sorted; index = rank
  std::uint32_t rank = 0;
  Stamp target;        ///< the state from which all start
  std::string digest;  ///< digest of the target
  SharedList<std::uint32_t>
      holders;  ///< ranks that have the target, ascending; the others receive it from them
  /// Clocks of an agreed state: applied rounds, and rows trained by the group.
  struct Clocks {
    std::uint64_t step = 0;
    std::uint64_t rows = 0;
    bool operator==(const Clocks&) const = default;
  };
  std::optional<Clocks> counts_from = {};  ///< start of the counts for --stop-after; none: unknown
  /// Partitions of each rank, as "topic:number", sorted. The only place that defines ownership.
  SharedList<std::vector<std::string>> owners = {};
  [[nodiscard]] std::uint32_t world() const noexcept { return static_cast<std::uint32_t>(members.size()); }
};

/// "rank 2 (edge-c)", for messages.
inline std::string rank_name(const ViewSpec& view, std::uint32_t rank) {
  return "rank " + std::to_string(rank) + (rank < view.world() ? " (" + view.members[rank] + ")" : "");
}

/// Key-value store of one view, for connecting. Keys are records of the control topic. Thread-safe.
class AddressBook {
 public:
  virtual ~AddressBook() = default;
  /// Publishes a value of this device for this view.
  virtual Status set(std::uint64_t token, const std::string& key, std::span<const std::byte> value) = 0;
  /// Returns the value if it was read from the log. Never waits.
  virtual std::vector<std::byte> get(std::uint64_t token, const std::string& key, bool& found) = 0;
};

}  // namespace rivulet::sync
