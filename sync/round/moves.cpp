#include "sync/round/moves.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "sync/round/session.h"

namespace rivulet::sync {
namespace {

constexpr std::uint16_t rows_wire_id = 0xfffe;  // in the header's compressor field: rows, not a payload
constexpr std::size_t tag_bytes = 48;

void pack_tag(const RowTag& tag, std::byte* out) {
  std::byte* at = out;
  const auto put = [&](const auto& v) {
    std::memcpy(at, &v, sizeof v);
    at += sizeof v;
  };
  put(tag.position.partition.topic);
  put(tag.position.partition.partition);
  put(tag.position.at.offset);
  put(tag.next.offset);
  put(tag.timestamp_ms);
  put(tag.position.at.row);
  put(tag.next.row);
  put(std::uint32_t{0});
}

RowTag unpack_tag(const std::byte* in) {
  RowTag tag;
  const auto get = [&](auto& v) {
    std::memcpy(&v, in, sizeof v);
    in += sizeof v;
  };
  get(tag.position.partition.topic);
  get(tag.position.partition.partition);
  get(tag.position.at.offset);
  get(tag.next.offset);
  get(tag.timestamp_ms);
  get(tag.position.at.row);
  get(tag.next.row);
  return tag;
}

}  // namespace

struct MovesExchange::PeerTransfer {
  std::uint32_t peer = 0;
  std::uint32_t rows = 0;  ///< planned at most
  bool incoming = false;
  bool opened = false;  ///< the payload is posted (or empty)
  std::array<std::byte, payload_header_bytes> header{};
  std::vector<std::byte> payload;
  std::vector<Ticket> tickets;
};

MovesExchange::MovesExchange(Transport& transport, const ViewSpec& view, const RowShape& shape,
                             std::size_t rows_max)
    : transport_(transport), view_(view), shape_(shape), rows_max_(rows_max) {}
MovesExchange::~MovesExchange() = default;

std::size_t MovesExchange::row_bytes() const {
  return tag_bytes + 4 * (shape_.columns() + shape_.targets);
}

std::span<const ReceivedRow> MovesExchange::received_rows() const {
  return received_;
}

void MovesExchange::clear() {
  transfers_.clear();
  received_.clear();
  received_values_.clear();
}

Progress MovesExchange::fail(Error error) {
  error_ = std::move(error);
  return Progress::failed;
}

void MovesExchange::begin(std::uint64_t round, std::span<const policy::Move> moves,
                          const BatchView& outgoing) {
  clear();
  round_ = round;
  const std::uint32_t me = transport_.rank();
  for (const auto& m : moves) {
    RIVULET_CHECK(m.from != m.to && m.from < transport_.world() && m.to < transport_.world(),
                  "move out of range");
    if (m.from != me && m.to != me) continue;
    PeerTransfer transfer;
    transfer.incoming = m.to == me;
    transfer.peer = transfer.incoming ? m.from : m.to;
    transfer.rows = m.rows;
    transfers_.push_back(std::move(transfer));
  }
  std::size_t given = 0;
  const std::size_t columns = shape_.columns();
  for (PeerTransfer& transfer :
       transfers_) {  // transfers_ does not grow any more: the buffers posted below stay where they are
    if (transfer.incoming) {
      transfer.tickets.push_back(transport_.receive(transfer.peer, Lane::moves_header, transfer.header));
      continue;
    }
    const std::size_t rows = std::min<std::size_t>(transfer.rows, outgoing.rows - given);
    transfer.payload.resize(rows * row_bytes());
    for (std::size_t i = 0; i < rows; ++i, ++given) {
      std::byte* at = transfer.payload.data() + i * row_bytes();
      pack_tag(outgoing.tags[given], at);
      std::memcpy(at + tag_bytes, outgoing.features.data() + given * columns, 4 * columns);
      std::memcpy(at + tag_bytes + 4 * columns, outgoing.targets.data() + given * shape_.targets,
                  std::size_t{4} * shape_.targets);
    }
    transfer.header = encode_header({view_.token, round_, rows_wire_id, transfer.payload.size()});
    transfer.tickets.push_back(transport_.send(transfer.peer, Lane::moves_header, transfer.header));
    if (!transfer.payload.empty())
      transfer.tickets.push_back(transport_.send(transfer.peer, Lane::moves, transfer.payload));
    transfer.opened = true;
  }
}

/// The header of an incoming move is here: check it, then post exactly its length.
bool MovesExchange::open_payload(PeerTransfer& transfer) {
  const auto header = decode_header(transfer.header);
  const std::string from = "rows from " + view_.members[transfer.peer] + ": ";
  if (!header) {
    fail({ErrorCode::protocol, from + header.error().message});
    return false;
  }
  const PayloadHeader& h = header.value();
  const bool fits = h.length % row_bytes() == 0 &&
                    h.length / row_bytes() <= std::min<std::size_t>(transfer.rows, rows_max_);
  if (h.view != view_.token || h.round != round_ || h.compressor != rows_wire_id || !fits) {
    fail({ErrorCode::protocol, from + "header does not belong to this round or is too long"});
    return false;
  }
  transfer.payload.resize(h.length);
  if (h.length > 0)
    transfer.tickets.push_back(transport_.receive(transfer.peer, Lane::moves, transfer.payload));
  transfer.opened = true;
  return true;
}

bool MovesExchange::unpack(const PeerTransfer& transfer) {
  const std::size_t columns = shape_.columns();
  for (std::size_t at = 0; at < transfer.payload.size(); at += row_bytes()) {
    received_values_.emplace_back(columns + shape_.targets);
    auto& values = received_values_.back();
    std::memcpy(values.data(), transfer.payload.data() + at + tag_bytes, 4 * values.size());
    const std::span<const float> all(values);
    received_.push_back({all.first(columns), all.subspan(columns), unpack_tag(transfer.payload.data() + at)});
  }
  return true;
}

Progress MovesExchange::poll() {
  bool all = true;
  for (PeerTransfer& transfer : transfers_) {
    bool done = true;
    for (const Ticket t : transfer.tickets) {
      const Progress p = transport_.poll(t);
      if (p == Progress::failed) return fail(transport_.error());
      done = done && p == Progress::done;
    }
    if (done && !transfer.opened) {
      if (!open_payload(transfer)) return Progress::failed;
      done = transfer.payload.empty();
    }
    all = all && done;
  }
  if (!all) return Progress::pending;
  for (const PeerTransfer& transfer : transfers_)
    if (transfer.incoming) unpack(transfer);
  return Progress::done;
}

}  // namespace rivulet::sync
