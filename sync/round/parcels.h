#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"
#include "sync/transport/transport.h"

namespace rivulet::sync {

/// Bytes of lengths that only their senders know, from some ranks to some: per parcel one checked header,
/// then exactly its length. Private to SyncSession; owner: the train thread. Nothing waits but wait().
class ParcelExchange {
 public:
  /// How its parcels travel. `wire_id`: in the header's field for a compressor.
  struct Way {
    Lane headers = Lane::copies;
    Lane bytes = Lane::copies;
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
    std::size_t unit = 1;  ///< the length is a multiple of it
  };
  /// Between two ranks in the same order on both sides. With Peers::have_time the silence of a peer counts
  /// from peers_are_due() on: it may not have sent yet, nor be there to receive.
  void begin(std::uint64_t round, std::vector<Outgoing> outgoing, std::span<const Incoming> incoming,
             Peers peers);
  void peers_are_due();
  /// Errors of failed: protocol (names the peer), the transport's.
  Progress poll();
  /// While poll() is pending: as Transport::wait() for the next of them.
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
