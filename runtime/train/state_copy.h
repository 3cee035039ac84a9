#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/gradient_view.h"
#include "core/wake.h"
#include "devices/device.h"
#include "devices/model_state.h"
#include "devices/optimizer.h"
#include "runtime/process/log.h"
#include "runtime/state/agreed_state.h"
#include "runtime/state/state_image.h"
#include "sync/membership/membership.h"
#include "sync/transport/transport.h"

namespace rivulet::runtime {

/// Receives the state of a group that this device waits to join, from one of its members (state_donor.h), and
/// makes each of the group's steps until the view ends. Each failure is reported to the group, which then has
/// another member as donor. Owner: the train thread. Memory: an image, then a state.
class StateCopy {
 public:
  struct Parts {
    const Clock& clock;
    Wake& wake;  ///< wake of the train agent
    const sync::Connect& connect;
    sync::membership::Membership& membership;
    const StateOwner& owner;
    const devices::ModelLayout& layout;
    devices::Device& device;
    const devices::OptimizerConfig& optimizer;
    GradientView sum;  ///< space for an agreed sum [P + B] on the host
    Duration peer_deadline;
    Logger& log;
  };
  explicit StateCopy(const Parts& parts);
  ~StateCopy();
  StateCopy(const StateCopy&) = delete;
  StateCopy& operator=(const StateCopy&) = delete;

  /// Begins or continues the copy that the membership asks for. Never waits. done: take() returns the state
  /// in which the view has ended. failed: once per failed copy. pending: also if no copy is needed.
  Progress step();
  AgreedState take();
  void drop();
  /// Progress for users; empty while nothing is copied.
  [[nodiscard]] std::string phrase() const;

 private:
  struct Session;
  Progress begin(const sync::membership::StateRequest& request);
  Progress receive();
  Status read_head();
  Status read_body();
  Status add_to_image();
  Status apply_rounds();
  Status end();
  void answer();
  Progress failed(const Error& error);

  const Parts parts_;
  std::uint64_t last_token_ = 0;
  std::unique_ptr<Session> session_;
};

}  // namespace rivulet::runtime
