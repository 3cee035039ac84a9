#include "sync/round/parcels.h"

#include <array>
#include <string>
#include <utility>

#include "core/check.h"
#include "sync/collective/aggregation.h"

namespace rivulet::sync {

struct ParcelExchange::Parcel {
  std::uint32_t peer = 0;
  std::size_t most = 0;
  std::size_t unit = 1;
  bool incoming = false;
  bool opened = false;  ///< its bytes are posted, or it has none
  std::array<std::byte, payload_header_bytes> header{};
  std::vector<std::byte> bytes;
  std::vector<Ticket> tickets;
};

ParcelExchange::ParcelExchange(Transport& transport, const ViewSpec& view, const Way& way)
    : transport_(transport), view_(view), way_(way) {}
ParcelExchange::~ParcelExchange() = default;

void ParcelExchange::clear() {
  parcels_.clear();
}

Progress ParcelExchange::fail(Error error) {
  error_ = std::move(error);
  return Progress::failed;
}

void ParcelExchange::begin(std::uint64_t round, std::vector<Outgoing> outgoing,
                           std::span<const Incoming> incoming, Peers peers) {
  clear();
  round_ = round;
  parcels_.resize(outgoing.size() + incoming.size());  // fixed size: posted buffers must not move
  std::size_t at = 0;
  for (Outgoing& out : outgoing) {
    Parcel& parcel = parcels_[at++];
    parcel.peer = out.peer;
    parcel.opened = true;
    parcel.bytes = std::move(out.bytes);
    parcel.header = encode_header({view_.token, round_, way_.wire_id, parcel.bytes.size()});
    parcel.tickets.push_back(transport_.send_ahead(parcel.peer, way_.headers, parcel.header));
    if (!parcel.bytes.empty())
      parcel.tickets.push_back(transport_.send_ahead(parcel.peer, way_.bytes, parcel.bytes));
  }
  for (const Incoming& in : incoming) {
    Parcel& parcel = parcels_[at++];
    parcel.peer = in.peer;
    parcel.most = in.most;
    parcel.unit = in.unit;
    parcel.incoming = true;
    parcel.tickets.push_back(transport_.receive_ahead(parcel.peer, way_.headers, parcel.header));
  }
  if (peers == Peers::due) peers_are_due();
}

void ParcelExchange::peers_are_due() {
  for (const Parcel& parcel : parcels_)
    for (const Ticket ticket : parcel.tickets) transport_.promote(ticket);
}

/// Checks the header of an incoming parcel, then posts a receive of exactly its length.
bool ParcelExchange::open(Parcel& parcel) {
  const auto header = decode_header(parcel.header);
  const auto refuse = [&](const std::string& why) {
    fail({ErrorCode::protocol,
          std::string(way_.what) + " from " + rank_name(view_, parcel.peer) + ": " + why});
    return false;
  };
  if (!header) return refuse(header.error().message);
  const PayloadHeader& h = header.value();
  const bool fits = h.length % parcel.unit == 0 && h.length <= parcel.most;
  if (h.view != view_.token || h.round != round_ || h.compressor != way_.wire_id || !fits)
    return refuse("the header belongs to a different round, or has an invalid length");
  parcel.bytes.resize(h.length);
  if (h.length > 0) parcel.tickets.push_back(transport_.receive(parcel.peer, way_.bytes, parcel.bytes));
  parcel.opened = true;
  return true;
}

Progress ParcelExchange::poll() {
  Progress all = Progress::done;
  for (Parcel& parcel : parcels_) {
    bool done = true;
    for (const Ticket t : parcel.tickets) {
      const Progress p = transport_.poll(t);
      if (p == Progress::failed) return fail(transport_.error());
      done = done && p == Progress::done;
    }
    if (done && !parcel.opened) {
      if (!open(parcel)) return Progress::failed;
      done = parcel.bytes.empty();
    }
    if (!done) all = Progress::pending;
  }
  return all;
}

bool ParcelExchange::wait() {
  for (const Parcel& parcel : parcels_)
    for (const Ticket t : parcel.tickets)
      if (transport_.poll(t) == Progress::pending) return transport_.wait(t);
  return true;
}

std::vector<ParcelExchange::Received> ParcelExchange::received() const {
  std::vector<Received> all;
  for (const Parcel& parcel : parcels_)
    if (parcel.incoming) all.push_back({parcel.peer, parcel.bytes});
  return all;
}

}  // namespace rivulet::sync
