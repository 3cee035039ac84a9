#pragma once
#include <cstdint>
#include <functional>

#include "core/time.h"

namespace rivulet::testing {

/// Asks `done` every 10 ms until it says yes (true) or `deadline` has passed (false). For processes and
/// threads; everything else moves a SimClock. A deadline above zero that passed is noted for main(): see
/// below.
bool wait_until(const std::function<bool()>& done, Duration deadline);

/// Waits until `count` has come to `wanted`; false as soon as it is beyond, and when it has stood still for
/// twice `patience`. Neither is noted as a deadline: rows that do not come are lost and not late, and rows
/// too many are never right. While it grows it is waited for.
bool wait_for_count(const std::function<std::uint64_t()>& count, std::uint64_t wanted, Duration patience);

/// A wait that ends without what it waited for says so here; the next assertion tells whether that matters. A
/// program whose every failed assertion came right after such a note ends with `deadline_exit`, and only that
/// is tried again (tests/support/try_again): a busy machine may have been too slow. Any thread.
void note_deadline_passed() noexcept;
/// Whether a note came since the last call.
bool take_deadline_note() noexcept;
inline constexpr int deadline_exit = 75;

}  // namespace rivulet::testing
