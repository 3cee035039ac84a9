#pragma once
#include <string>
#include <vector>

#include "sync/membership/next_view.h"

/// Private to membership/: messages for people.
namespace rivulet::sync::membership {

/// "a (host h, pid 1)".
std::string place_of(const Hello& hello);
/// Two processes with one id have replaced each other too often.
std::string contested_device(const DeviceEntry& device);
/// A newer session of this id takes the place of this one.
std::string superseded_by(const Hello& newer);
/// `present` lives, and a process of the same id that cannot serve has come.
std::string keeps_its_place(const Hello& present, const Obstacle& why);
/// To a device that is not let into a group: why, and what to do.
std::string not_let_in(const Fold& fold, const Obstacle& why, const std::string& self);
/// The beginning of the control log is gone.
std::string beheaded_log(const std::string& job, std::int64_t first_offset);
/// What the others of `next` wait for beside devices that are not here: that somebody goes, or is corrected.
std::vector<std::string> other_hopes(const NextView& next);

}  // namespace rivulet::sync::membership
