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

MovesExchange::MovesExchange(Transport& transport, const ViewSpec& view, const RowShape& shape,
                             std::size_t rows_max)
    : transport_(transport),
      shape_(shape),
      rows_max_(rows_max),
      parcels_(transport, view, {Lane::moves_header, Lane::moves, rows_wire_id, "rows"}) {}
MovesExchange::~MovesExchange() = default;

std::size_t MovesExchange::row_bytes() const {
  return tag_bytes + 4 * (shape_.columns() + shape_.targets);
}

std::span<const ReceivedRow> MovesExchange::received_rows() const {
  return received_;
}

void MovesExchange::clear() {
  parcels_.clear();
  unpacked_ = false;
  received_.clear();
  received_values_.clear();
}

std::vector<std::byte> MovesExchange::pack(const BatchView& outgoing, std::size_t first,
                                           std::size_t rows) const {
  const std::size_t columns = shape_.columns();
  std::vector<std::byte> bytes(rows * row_bytes());
  for (std::size_t i = 0; i < rows; ++i) {
    std::byte* at = bytes.data() + i * row_bytes();
    pack_tag(outgoing.tags[first + i], at);
    std::memcpy(at + tag_bytes, outgoing.features.data() + (first + i) * columns, 4 * columns);
    std::memcpy(at + tag_bytes + 4 * columns, outgoing.targets.data() + (first + i) * shape_.targets,
                std::size_t{4} * shape_.targets);
  }
  return bytes;
}

void MovesExchange::begin(std::uint64_t round, std::span<const policy::Move> moves,
                          const BatchView& outgoing) {
  clear();
  const std::uint32_t me = transport_.rank();
  std::vector<ParcelExchange::Outgoing> out;
  std::vector<ParcelExchange::Incoming> in;
  std::size_t given = 0;
  for (const auto& m : moves) {
    RIVULET_CHECK(m.from != m.to && m.from < transport_.world() && m.to < transport_.world(),
                  "move out of range");
    if (m.to == me)
      in.push_back({m.from, std::min<std::size_t>(m.rows, rows_max_) * row_bytes(), row_bytes()});
    if (m.from != me) continue;
    const std::size_t rows = std::min<std::size_t>(m.rows, outgoing.rows - given);
    out.push_back({m.to, pack(outgoing, given, rows)});
    given += rows;
  }
  parcels_.begin(round, std::move(out), in, Peers::due);
}

void MovesExchange::unpack(std::uint32_t peer, std::span<const std::byte> bytes) {
  const std::size_t columns = shape_.columns();
  for (std::size_t at = 0; at < bytes.size(); at += row_bytes()) {
    received_values_.emplace_back(columns + shape_.targets);
    auto& values = received_values_.back();
    std::memcpy(values.data(), bytes.data() + at + tag_bytes, 4 * values.size());
    const std::span<const float> all(values);
    received_.push_back({peer, all.first(columns), all.subspan(columns), unpack_tag(bytes.data() + at)});
  }
}

Progress MovesExchange::poll() {
  const Progress p = parcels_.poll();
  if (p != Progress::done || unpacked_) return p;
  unpacked_ = true;
  for (const auto& parcel : parcels_.received()) unpack(parcel.peer, parcel.bytes);
  return p;
}

}  // namespace rivulet::sync
