#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sync/transport/transport.h"

namespace rivulet::sync {

/// Waits until all ranks of a view have entered. Each rank sends a few bytes to each other rank, or enters
/// one gathering if the transport supports it. Owner: the train thread; usable once. `transport` outlives it.
class Barrier {
 public:
  enum class Means : std::uint8_t {
    any,       ///< the transport's gathering if it has one, else messages
    messages,  ///< always messages, so that they queue behind other lanes as on a wire
  };
  Barrier(Transport& transport, Lane lane, std::size_t bytes, Means means = Means::any);

  /// Posts the receives now. Waiting for peers then does not count for the progress deadline.
  void be_patient();
  void enter();
  /// Returns pending, done, or the failure of the transport.
  Progress poll();

 private:
  [[nodiscard]] Gathering* gathering() const noexcept;

  Transport& transport_;
  const Lane lane_;
  const Means means_;
  const std::vector<std::byte> word_;
  std::vector<std::vector<std::byte>> words_;  ///< received bytes, by rank
  bool patient_ = false;
  std::vector<Ticket> pending_;
};

}  // namespace rivulet::sync
