#include "sync/policy/settling.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rivulet::sync::policy {
namespace {

enum Place : std::size_t {
  left_at,   ///< rounds left in the window
  by_at,     ///< Precedence of the change
  who_at,    ///< 1 + index of the controller that changed; 0: not a controller
  since_at,  ///< rounds in a row with an open window
  begun_at,  ///< 1: a round has counted
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
  for (const ControllerEntry* controller : controllers) {
    const double half_life = half_life_of(*controller, config);
    if (half_life > 0) loops_.push_back(controller);
    longest = std::max(longest, half_life);
  }
  window_ = std::ceil(half_lives * longest);
  // The memory may come from an unknown source.
  const double most[numbers] = {window_, static_cast<double>(Precedence::learning_rate),
                                static_cast<double>(controllers.size()),
                                patience * window_ * static_cast<double>(loops_.size() + 1), 1};
  for (std::size_t i = 0; i < numbers; ++i)
    memory_[i] = memory_[i] > 0 ? std::floor(std::min(memory_[i], most[i])) : 0;
}

void Settling::open(Precedence by, double who, std::string what) {
  if (window_ == 0) return;
  const auto level = static_cast<double>(by);
  if (memory_[left_at] == 0 || level >= memory_[by_at]) {
    memory_[by_at] = level;
    memory_[who_at] = who;
  }
  memory_[left_at] = window_;
  changes_ = std::move(what);
}

void Settling::members_changed() {
  if (window_ > 0 && memory_[begun_at] > 0) open(Precedence::membership, 0, "the group");
}

/// The loop that gets the next window after too many windows in a row; null if there is none.
const ControllerEntry* Settling::whose_turn() const {
  const double turn = std::floor(memory_[since_at] / (patience * window_));
  if (turn < 1 || memory_[since_at] - turn * patience * window_ >= window_) return nullptr;
  return loops_[static_cast<std::size_t>(turn - 1) % loops_.size()];
}

bool Settling::waits(const ControllerEntry& controller) const {
  if (window_ == 0 || memory_[left_at] == 0) return false;
  if (const ControllerEntry* turn = whose_turn(); turn != nullptr) return turn != &controller;
  const auto who = static_cast<std::size_t>(memory_[who_at]);
  if (who > 0 && controllers_[who - 1] == &controller) return false;
  return memory_[by_at] >= static_cast<double>(precedence_of(controller.role));
}

void Settling::has_changed(const ControllerEntry& controller) {
  const auto place = std::ranges::find(controllers_, &controller) - controllers_.begin();
  open(precedence_of(controller.role), static_cast<double>(place) + 1, name_of(controller));
}

void Settling::end_round(bool counts) {
  if (window_ == 0 || !counts) return;
  memory_[begun_at] = 1;
  // A round with a change does not count towards the window.
  if (changes_.empty()) memory_[left_at] = std::max(0.0, memory_[left_at] - 1);
  memory_[since_at] = memory_[left_at] > 0 ? memory_[since_at] + 1 : 0;
  if (memory_[since_at] >= patience * window_ * static_cast<double>(loops_.size() + 1))
    memory_[since_at] = patience * window_;  // all had their turn: back to the first one
}

}  // namespace rivulet::sync::policy
