#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"
#include "sync/transport/transport.h"

namespace rivulet::sync {

/// Exchanges parcels of bytes between some ranks. Only the sender knows a parcel's length, so each begins
/// with a checked header that specifies it. Private to SyncSession. Owner: the train thread. Only wait()
/// waits.
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
    std::size_t most = 0;  ///< maximum length in bytes
    std::size_t unit = 1;  ///< the length is a multiple of this
  };
  /// Both ranks must list their common parcels in the same order. With Peers::have_time a peer's silence
  /// counts only after peers_are_due(): it may not have sent or posted its receives yet.
  void begin(std::uint64_t round, std::vector<Outgoing> outgoing, std::span<const Incoming> incoming,
             Peers peers);
  void peers_are_due();
  /// After failed, error() is protocol (names the peer), or the transport's.
  Progress poll();
  /// While poll() is pending: as Transport::wait(), for the next missing parcel.
  bool wait();
  [[nodiscard]] const Error& error() const { return error_; }
  struct Received {
    std::uint32_t peer = 0;
    std::span<const std::byte> bytes;
  };
  /// Parcels in the order of `incoming`. Valid after done, until clear() or begin().
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
