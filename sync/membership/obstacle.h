#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/stamp.h"

/// Why a view cannot form, or a session cannot begin: what devices decide by, and the sentence for people.
namespace rivulet::sync::membership {

enum class WhyNot : std::uint8_t {
  none,
  missing,        ///< fewer devices are ready than are wanted
  configuration,  ///< two devices differ in a key of the group
  partition,      ///< two devices claim the same one
  number,         ///< more devices than are wanted
  outside,        ///< a group that lives has no place for this device
  lost_state,     ///< nobody who is here has the state that the group has saved
  foreign_state,  ///< the state is of a view that the log does not know
  earlier_state,  ///< the state is of a run that is over
};
inline constexpr std::size_t why_nots = 9;
/// As in a LEAVE: "lost_state". Empty for none.
std::string_view name_of(WhyNot why) noexcept;
/// WhyNot::none for what this build does not know.
WhyNot why_not_of(std::string_view name) noexcept;

/// What stands in the way, with whatever of these fields belongs to it.
struct Obstacle {
  WhyNot why = WhyNot::none;
  std::string subject = {};  ///< configuration: the first key that differs, empty if none does though the
                             ///< hashes do; partition: "topic:partition"; foreign and earlier state: the job
  std::string device = {};   ///< configuration, partition: whose stands; outside, states: who is meant
  std::string other = {};    ///< configuration, partition: who differs from it
  std::string value = {};    ///< configuration: on `device`
  std::string other_value = {};  ///< on `other`
  std::vector<std::string> devices =
      {};                    ///< number: who wants to; outside: the group; lost_state: who is here
  std::uint64_t count = 0;   ///< missing: how many are ready; states: views or runs that the log knows
  std::uint64_t wanted = 0;  ///< missing, number: job.devices; earlier_state: views before the run
  Stamp state = {};

  explicit operator bool() const noexcept { return why != WhyNot::none; }
  bool operator==(const Obstacle&) const = default;
};

/// One sentence for people, without its full stop. Empty for none.
std::string text_of(const Obstacle& obstacle);

}  // namespace rivulet::sync::membership
