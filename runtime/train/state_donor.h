#pragma once
#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/wake.h"
#include "devices/device.h"
#include "devices/model_state.h"
#include "runtime/process/agent.h"
#include "runtime/process/log.h"
#include "runtime/state/agreed_state.h"
#include "runtime/state/state_image.h"
#include "runtime/train/copy_message.h"
#include "sync/membership/membership.h"
#include "sync/transport/transport.h"

namespace rivulet::runtime {

/// Copies the agreed state to a device that waits to join, over a connection of its own, while the group
/// trains: the image, then each round that changes the state, until the view ends. Uses at most half of the
/// link until then. Serves one device at a time; the next one asks again. A copy fails if the connection
/// does, or if the rounds not sent yet take more memory than an image: the device then asks another member.
///
/// The train thread copies the state, about as long as a checkpoint does, and encodes the agreed sums; all
/// else runs in this agent's thread. Memory while it copies: two states, then an image and the rounds.
class StateDonor final : public Agent {
 public:
  struct Parts {
    const Clock& clock;
    Wake& wake;  ///< wake of this agent
    const sync::Connect& connect;
    sync::AddressBook& addresses;
    StateOwner owner;
    const devices::ModelLayout& layout;
    devices::Device& device;
    Logger& log;
    Duration peer_deadline;
  };
  explicit StateDonor(Parts parts);
  ~StateDonor() override;

  // train thread
  /// Begins the requested copy from this state, unless it was begun before; ends one that is not requested
  /// any more. Errors: unavailable (memory).
  Status follow(const std::optional<sync::membership::StateRequest>& request, const AgreedState& state);
  /// Whether rounds must be passed to applied().
  [[nodiscard]] bool gives() const noexcept { return token_.load(std::memory_order_acquire) != 0; }
  /// A round is about to change the state; `sum` is its agreed sum.
  void applied(const CopiedRound& round, const GradientView& sum);
  /// Whether the device has all but the last round, so that it can join.
  [[nodiscard]] bool nearly_done() const noexcept { return nearly_done_.load(std::memory_order_acquire); }
  /// The view has ended with this state: a device that is nearly done gets the remaining rounds at full
  /// speed. Returns its id: the next view waits for it. Any other copy is void.
  std::vector<std::string> end(const Stamp& stamp);
  /// The state was replaced: the copy is void.
  void drop();

  // donor thread
  [[nodiscard]] std::string_view name() const noexcept override { return "donor"; }
  Turn step() override;

 private:
  struct Session;
  /// What the train thread passes to this agent.
  struct Job {
    std::optional<sync::membership::StateRequest> request;
    std::unique_ptr<AgreedState> state;  ///< until it is encoded
    std::deque<std::vector<std::byte>> rounds;
    std::size_t bytes = 0;  ///< of the rounds
    std::optional<Stamp> end;
    std::size_t unconfirmed_rounds = 0;  ///< sent, but not answered
    std::size_t unconfirmed_bytes = 0;
    double bytes_per_s = 0;  ///< of the link; 0: the image has not arrived yet
  };
  void note_distance();
  Turn begin(std::uint64_t token);
  Turn connect();
  Turn send_next();
  Turn send(CopyHead head, std::vector<std::byte> body);
  void confirmed();
  Turn failed(const Error& error);
  void finish();
  std::vector<std::byte> take_rounds();

  // constant
  const Parts parts_;
  const std::size_t queue_bytes_max_;
  // train thread
  std::uint64_t last_token_ = 0;
  // both
  std::atomic<std::uint64_t> token_{0};  ///< of the copy; 0: none
  std::atomic<bool> nearly_done_{false};
  std::mutex mutex_;
  Job job_;
  // donor thread
  std::unique_ptr<Session> session_;
};

}  // namespace rivulet::runtime
