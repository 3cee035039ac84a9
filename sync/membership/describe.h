#pragma once
#include <string>
#include <vector>

#include "sync/membership/next_view.h"

/// Private to membership/: messages for users.
namespace rivulet::sync::membership {

/// Device and process, as "a (host h, pid 1)".
std::string place_of(const Hello& hello);
/// For two processes with one id that have replaced each other too often.
std::string contested_device(const DeviceEntry& device);
/// The others have found the state or the messages of this device wrong twice.
std::string expelled_device(const DeviceEntry& device);
/// What a device waits for that is not in the present view.
std::string group_to_join(const Fold& fold, const GroupSizes& sizes);
/// A newer session of this id replaces this one.
std::string superseded_by(const Hello& newer);
/// For a process that cannot replace `present`, a live session of the same id.
std::string keeps_its_place(const Hello& present, const AdmissionError& why);
/// For a rejected device: the reason and what to do.
std::string not_let_in(const Fold& fold, const AdmissionError& why, const std::string& self);
/// The beginning of the control log is missing.
std::string beheaded_log(const std::string& job, std::int64_t first_offset);
/// What `next` waits for in addition to missing devices: devices that must leave, or corrections.
std::vector<std::string> other_hopes(const NextView& next);

}  // namespace rivulet::sync::membership
