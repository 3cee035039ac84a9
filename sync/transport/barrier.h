#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sync/transport/transport.h"

namespace rivulet::sync {

/// All ranks of a view wait for each other: each sends the same few bytes to each, or enters one gathering
/// where the transport has that. Owner: the train thread; once per object. `transport` outlives it.
class Barrier {
 public:
  enum class Means : std::uint8_t {
    any,       ///< of the transport
    messages,  ///< behind what is on its way on other lanes, as on a wire
  };
  Barrier(Transport& transport, Lane lane, std::size_t bytes, Means means = Means::any);

  /// Waiting for others is not a lack of progress: receives are posted now.
  void be_patient();
  void enter();
  /// pending | done | failed, as the transport.
  Progress poll();

 private:
  [[nodiscard]] Gathering* gathering() const noexcept;

  Transport& transport_;
  const Lane lane_;
  const Means means_;
  const std::vector<std::byte> word_;
  std::vector<std::vector<std::byte>> words_;  ///< by rank, as received
  bool patient_ = false;
  std::vector<Ticket> pending_;
};

}  // namespace rivulet::sync
