#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"
#include "sync/transport/transport.h"

namespace rivulet::sync {

/// Exchanges bytes between some ranks whose lengths only the senders know: per parcel a checked header, then
/// exactly as many bytes as it specifies. Private to SyncSession. Owner: the train thread. Only wait() waits.
class ParcelExchange {
 public:
  /// How its parcels are sent. `wire_id`: in the header's compressor field.
  struct Way {
    Lane headers = Lane::rows;
    Lane bytes = Lane::rows;
    std::uint16_t wire_id = 0;
    const char* what = "";  ///< for messages: "rows"
  };
  ParcelExchange(Transport& transport, const ViewSpec& view, const Way& way);
  ~ParcelExchange();
  ParcelExchange(const ParcelExchange&) = delete;
  ParcelExchange& operator=(const ParcelExchange&) = delete;

  struct Outgoing {
    std::uint32_t peer = 0;
    std::vector<std::byte> bytes;
  };
  struct Incoming {
    std::uint32_t peer = 0;
    std::size_t most = 0;  ///< bytes
    std::size_t unit = 1;  ///< the length is a multiple of this
  };
  /// Two ranks use the same order on both sides. With Peers::have_time a peer's silence counts only after
  /// peers_are_due(): it may not have sent or posted its receives yet.
  void begin(std::uint64_t round, std::vector<Outgoing> outgoing, std::span<const Incoming> incoming,
             Peers peers);
  void peers_are_due();
  /// Errors of failed: protocol (names the peer), or the transport's.
  Progress poll();
  /// While poll() is pending: as Transport::wait(), for the next missing one.
  bool wait();
  [[nodiscard]] const Error& error() const { return error_; }
  struct Received {
    std::uint32_t peer = 0;
    std::span<const std::byte> bytes;
  };
  /// After done, until clear() or begin(): in the order of `incoming`.
  [[nodiscard]] std::vector<Received> received() const;
  void clear();

 private:
  struct Parcel;
  Progress fail(Error error);
  bool open(Parcel& parcel);

  // constant
  Transport& transport_;
  const ViewSpec& view_;
  const Way way_;
  // train thread
  std::uint64_t round_ = 0;
  std::vector<Parcel> parcels_;
  Error error_;
};

}  // namespace rivulet::sync
