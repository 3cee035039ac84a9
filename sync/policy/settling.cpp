#include "sync/policy/settling.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rivulet::sync::policy {
namespace {

enum Place : std::size_t {
  left_at,   ///< rounds until what has changed has settled
  by_at,     ///< Precedence of who changed it
  who_at,    ///< 1 + place among the controllers; 0: none of them
  since_at,  ///< rounds in a row in which somebody might have waited
  room_at,   ///< rows that the device with the least room can take
  rounds_at,
};
constexpr double half_lives = 2;
constexpr double patience = 4;  ///< windows

double half_life_of(const ControllerEntry& controller, const PolicyConfig& config) {
  return controller.slow.half_life != nullptr ? controller.slow.half_life(config) : 0;
}

}  // namespace

Precedence precedence_of(Role role) noexcept {
  switch (role) {
    case Role::batch: return Precedence::batch;
    case Role::learning_rate: return Precedence::learning_rate;
    case Role::when:
    case Role::transfer:
    case Role::compression:
    case Role::collective: return Precedence::exchange;
  }
  return Precedence::none;
}

bool Settling::is_needed(const Controllers& controllers, const PolicyConfig& config) {
  return std::ranges::any_of(
      controllers, [&](const ControllerEntry* controller) { return half_life_of(*controller, config) > 0; });
}

Settling::Settling(const Controllers& controllers, const PolicyConfig& config, std::span<double> memory)
    : controllers_(controllers), memory_(memory) {
  if (memory_.size() != numbers) return;
  double longest = 0;
  for (const ControllerEntry* controller : controllers)
    longest = std::max(longest, half_life_of(*controller, config));
  window_ = std::ceil(half_lives * longest);
}

void Settling::open(Precedence by, double who, std::string what) {
  if (window_ == 0) return;
  const bool was_open = memory_[left_at] > 0;
  const auto level = static_cast<double>(by);
  if (was_open && level < memory_[by_at]) memory_[since_at] = 0;  // it has waited long enough
  if (!was_open || level >= memory_[by_at]) {
    memory_[by_at] = level;
    memory_[who_at] = who;
  }
  memory_[left_at] = window_;
  said_ = std::move(what);
}

void Settling::begin_view() {
  if (window_ == 0 || memory_[rounds_at] == 0) return;
  memory_[room_at] = 0;
  open(Precedence::membership, 0, "the group");
}

void Settling::look_at(const FactsTable& table) {
  if (window_ == 0) return;
  double room = 0;
  for (const Facts& f : table.facts)
    if (f.rows_max > 0 && (room == 0 || f.rows_max < room)) room = f.rows_max;
  if (room < memory_[room_at]) open(Precedence::memory, 0, "room for rows");
  memory_[room_at] = room;
}

bool Settling::waits(const ControllerEntry& controller) const {
  if (window_ == 0 || memory_[left_at] <= 0 || memory_[since_at] > patience * window_) return false;
  const auto who = static_cast<std::size_t>(std::max(0.0, memory_[who_at]));
  if (who > 0 && who <= controllers_.size() && controllers_[who - 1] == &controller) return false;
  return memory_[by_at] >= static_cast<double>(precedence_of(controller.role));
}

void Settling::has_changed(const ControllerEntry& controller) {
  const auto place = std::ranges::find(controllers_, &controller) - controllers_.begin();
  open(precedence_of(controller.role), static_cast<double>(place) + 1, name_of(controller));
}

void Settling::end_round(bool exchanges) {
  if (window_ == 0 || !exchanges) return;
  memory_[rounds_at] += 1;
  // A round in which something changes is not one in which it settles.
  if (said_.empty()) memory_[left_at] = std::max(0.0, memory_[left_at] - 1);
  memory_[since_at] = memory_[left_at] > 0 ? memory_[since_at] + 1 : 0;
}

}  // namespace rivulet::sync::policy
