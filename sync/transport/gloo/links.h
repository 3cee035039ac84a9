#pragma once
#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "sync/transport/gloo/dialer.h"
#include "sync/transport/gloo/frame_check.h"
#include "sync/transport/gloo/group.h"

namespace gloo::transport::tcp {
class Pair;
}

namespace rivulet::sync::gloo_door {

/// Thrown out of the constructor of c10d's group. Holds the failure that connect_group() reports.
class NotConnected final : public std::exception {
 public:
  explicit NotConnected(ConnectFailure failure) : failure_(std::move(failure)) {}
  [[nodiscard]] const char* what() const noexcept override { return failure_.error.message.c_str(); }
  [[nodiscard]] const ConnectFailure& failure() const noexcept { return failure_; }

 private:
  ConnectFailure failure_;
};

/// The connections of one view: which are dialed, which are connected, and which peer sent a frame that Gloo
/// cannot process (docs/adr/0045). Gloo's pairs are looked up by pointer.
///
/// The comm thread connects all pairs in parallel, until all are connected, the deadline passes, or it is
/// cancelled. Gloo alone would connect one after the other, each for up to five times its timeout. Gloo's
/// loop thread reads.
class Links {
 public:
  using Pair = ::gloo::transport::tcp::Pair;

  /// `request` must outlive connecting.
  explicit Links(const ConnectRequest& request);
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  /// Returns the object that is connecting on this thread, or null.
  static std::shared_ptr<Links> connecting() noexcept;
  /// Registers the object for this thread, while c10d's constructor runs.
  class Connecting {
   public:
    explicit Connecting(std::shared_ptr<Links> links);
    ~Connecting();
    Connecting(const Connecting&) = delete;
    Connecting& operator=(const Connecting&) = delete;
  };

  // comm thread
  /// Adds the next pair, in the order in which Gloo creates them.
  void expect(Pair* pair);
  void dial(const sockaddr_storage& to, std::int64_t number, Dialer::Answered answered);
  /// Records progress: an address or a connection has arrived.
  void progress();
  /// Waits briefly for an event. Throws NotConnected if cancelled, or if there was no progress within the
  /// deadline; `missing` names the missing ranks for users.
  void step(const std::function<ConnectFailure()>& missing);
  /// Returns when all `pairs` are connected. Throws NotConnected, also if Gloo has made connections itself.
  void wait_until_attached(std::size_t pairs);
  /// Passes no more connections to Gloo, so its pairs may be destroyed.
  void abandon();
  /// Calls abandon(), then throws.
  [[noreturn]] void give_up(ConnectFailure failure);
  /// Unregisters all pairs. Call after all pairs have been destroyed.
  void forget();

  // comm thread, Gloo's loop thread
  /// Passes a connection to Gloo, unless abandoned.
  void hand_over(const std::function<void()>& give);

  // train thread
  void posted(bool sending, std::uint32_t rank, int mesh);

  // any thread
  /// Returns why a message from a peer was rejected; empty if none was.
  [[nodiscard]] std::optional<std::string> refusal(std::uint32_t rank) const;
  /// Returns how the connection ended on which a rank sends data; empty while it is open.
  [[nodiscard]] std::optional<std::string> data_broken(std::uint32_t rank) const;
  /// Returns the number of messages received from a rank on a lane.
  [[nodiscard]] std::uint64_t arrived(std::uint32_t rank, Lane lane) const;

  // Gloo's loop thread, for a registered pair
  /// Returns null if Gloo may process the frame, else the reason.
  static const char* refuse(const Pair* pair, const Preamble& preamble);
  /// Records that the message begun last is complete.
  static void ended(const Pair* pair);
  static void refused(const Pair* pair, const std::string& why);
  /// Records that the connection has ended.
  static void broken(const Pair* pair, const std::string& why);

 private:
  struct Link;
  struct Known;
  static Known& known();
  static std::shared_ptr<Link> find(const Pair* pair);
  [[nodiscard]] ConnectFailure missing_links() const;
  [[nodiscard]] Link& link_to(std::uint32_t rank, int mesh) const;
  [[nodiscard]] int mesh_from(std::uint32_t rank) const;
  void look_for_the_broken();
  bool all_attached();

  // constant
  const ConnectRequest& request_;  ///< while connecting
  const std::function<void(Lane)> on_arrival_;
  const ViewSpec view_;
  // comm thread
  Dialer dialer_;
  std::vector<std::shared_ptr<Link>> links_;  ///< by mesh, then by rank
  TimePoint began_;
  TimePoint progress_at_;
  // shared
  std::mutex wanted_mutex_;  ///< locked while Gloo takes a connection over
  bool wanted_ = true;
};

}  // namespace rivulet::sync::gloo_door
