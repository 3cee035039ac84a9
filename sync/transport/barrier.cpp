#include "sync/transport/barrier.h"

#include "sync/transport/gathering.h"

namespace rivulet::sync {

Barrier::Barrier(Transport& transport, Lane lane, std::size_t bytes, Means means)
    : transport_(transport), lane_(lane), means_(means), word_(bytes) {}

Gathering* Barrier::gathering() const noexcept {
  return means_ == Means::any ? transport_.gathering() : nullptr;
}

void Barrier::be_patient() {
  patient_ = true;
  if (gathering() != nullptr) return;
  words_.assign(transport_.world(), word_);
  for (std::uint32_t k = 1; k < transport_.world(); ++k) {
    const std::uint32_t peer = (transport_.rank() + k) % transport_.world();
    pending_.push_back(transport_.receive_ahead(peer, lane_, words_[peer]));
  }
}

void Barrier::enter() {
  if (Gathering* all = gathering(); all != nullptr) {
    pending_.push_back(all->contribute(
        {.lane = lane_, .bytes = word_, .contributors = transport_.world(), .patient = patient_}));
    return;
  }
  words_.resize(transport_.world(), word_);
  for (std::uint32_t k = 1; k < transport_.world(); ++k) {
    const std::uint32_t peer = (transport_.rank() + k) % transport_.world();
    if (!patient_) pending_.push_back(transport_.receive(peer, lane_, words_[peer]));
    pending_.push_back(transport_.send(peer, lane_, word_));
  }
}

Progress Barrier::poll() {
  return finish_all(transport_, pending_);
}

}  // namespace rivulet::sync
