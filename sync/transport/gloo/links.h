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

/// Ends the constructor of c10d's group early: what connect_group() reports.
class NotConnected final : public std::exception {
 public:
  explicit NotConnected(ConnectFailure failure) : failure_(std::move(failure)) {}
  [[nodiscard]] const char* what() const noexcept override { return failure_.error.message.c_str(); }
  [[nodiscard]] const ConnectFailure& failure() const noexcept { return failure_; }

 private:
  ConnectFailure failure_;
};

/// The connections of one view: who is called, which stand, which peer has sent what Gloo has no place for
/// (docs/adr/0045). Gloo's pairs find theirs by their own address.
///
/// comm connects: all pairs at once, until all stand, the deadline passes, or nobody wants it any more. Gloo
/// would connect one after the other, each for up to five times its timeout. Gloo's loop thread reads.
class Links {
 public:
  using Pair = ::gloo::transport::tcp::Pair;

  /// `request` must outlive the connecting.
  explicit Links(const ConnectRequest& request);
  ~Links();
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;

  /// The one that connects on this thread, or null.
  static std::shared_ptr<Links> connecting() noexcept;
  /// While c10d's constructor runs.
  class Connecting {
   public:
    explicit Connecting(std::shared_ptr<Links> links);
    ~Connecting();
    Connecting(const Connecting&) = delete;
    Connecting& operator=(const Connecting&) = delete;
  };

  // comm thread
  /// The next pair, in the order in which Gloo makes them.
  void expect(Pair* pair);
  void dial(const sockaddr_storage& to, std::int64_t number, Dialer::Answered answered);
  /// Something has come: an address, a connection.
  void progress();
  /// Waits a moment for something to happen. Throws NotConnected: cancelled, or nothing has come for the
  /// deadline; `missing` says who, for people.
  void step(const std::function<ConnectFailure()>& missing);
  /// Returns when all stand; there must be `pairs`. Throws NotConnected, also where Gloo has connected others
  /// itself.
  void wait_until_all_stand(std::size_t pairs);
  /// No connection reaches Gloo after this: its pairs may go.
  void abandon();
  /// As abandon(), and throws.
  [[noreturn]] void give_up(ConnectFailure failure);
  /// No pair is left.
  void forget();

  // comm thread, Gloo's loop thread
  /// Gives Gloo a connection, if somebody still wants it.
  void hand_over(const std::function<void()>& give);

  // train thread
  void posted(bool sending, std::uint32_t rank, int mesh);

  // any thread
  /// What a peer has sent that this view does not expect; empty: nothing.
  [[nodiscard]] std::optional<std::string> refusal(std::uint32_t rank) const;
  /// How the connection ended on which a rank sends data; empty: it stands.
  [[nodiscard]] std::optional<std::string> data_broken(std::uint32_t rank) const;
  /// Messages of a lane that have come from a rank.
  [[nodiscard]] std::uint64_t arrived(std::uint32_t rank, Lane lane) const;

  // Gloo's loop thread, of a pair that is known
  /// Null: Gloo may have it.
  static const char* refuse(const Pair* pair, const Preamble& preamble);
  /// What was begun last is there as a whole.
  static void ended(const Pair* pair);
  static void refused(const Pair* pair, const std::string& why);
  /// The connection is over.
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
  bool all_stand();

  // constant
  const ConnectRequest& request_;  ///< while connecting
  const std::function<void(Lane)> on_arrival_;
  const ViewSpec view_;
  // comm thread
  Dialer dialer_;
  std::vector<std::shared_ptr<Link>> links_;  ///< mesh by mesh, in each by rank
  TimePoint began_;
  TimePoint progress_at_;
  // shared
  std::mutex wanted_mutex_;  ///< held while Gloo takes a connection over
  bool wanted_ = true;
};

}  // namespace rivulet::sync::gloo_door
