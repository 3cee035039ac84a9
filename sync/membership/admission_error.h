#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/stamp.h"

/// Why a view cannot form, or a session cannot begin: for decisions, and as a sentence for users.
namespace rivulet::sync::membership {

enum class WhyNot : std::uint8_t {
  none,
  missing,        ///< fewer devices are ready than required
  configuration,  ///< two devices differ in a key of the group
  partition,      ///< two devices claim the same partition
  number,         ///< more devices than required
  outside,        ///< a live group has no place for this device
  lost_state,     ///< no present device has the state that the group has saved, nor an absent one
  absent_state,   ///< only absent devices have that state
  foreign_state,  ///< the state belongs to a view that is not in the log
  earlier_state,  ///< the state is from an earlier run
};
inline constexpr std::size_t why_nots = 10;
/// Name as in a LEAVE, such as "lost_state". Empty for none.
std::string_view name_of(WhyNot why) noexcept;
/// WhyNot::none if unknown in this build.
WhyNot why_not_of(std::string_view name) noexcept;

/// An obstacle, with the fields that apply to it.
struct AdmissionError {
  WhyNot why = WhyNot::none;
  std::string subject = {};  ///< configuration: the first key that differs, empty if only the hashes differ;
                             ///< partition: "topic:partition"; foreign and earlier state: the job
  std::string device = {};   ///< configuration, partition: the owner; outside, states: the device concerned
  std::string other = {};    ///< configuration, partition: the conflicting device
  std::string value = {};    ///< configuration: value on `device`
  std::string other_value = {};           ///< configuration: value on `other`
  std::vector<std::string> devices = {};  ///< number: all that try to join; outside: the group; lost_state:
                                          ///< all present; absent_state: who has it
  std::uint64_t count = 0;                ///< missing: ready devices; states: views or runs in the log
  std::uint64_t wanted =
      0;  ///< missing: fewest devices; number: job.devices; earlier_state: views before the run
  Stamp state = {};

  explicit operator bool() const noexcept { return why != WhyNot::none; }
  bool operator==(const AdmissionError&) const = default;
};

/// One sentence for users, without a full stop. Empty for none.
std::string text_of(const AdmissionError& obstacle);
/// For absent_state: who is needed and why, as "c or d, with the group's saved state (1.40)".
std::string holders_of(const AdmissionError& obstacle);

}  // namespace rivulet::sync::membership
