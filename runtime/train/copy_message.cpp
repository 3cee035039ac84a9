#include "runtime/train/copy_message.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/digest.h"
#include "runtime/state/announced.h"
#include "runtime/state/round_update.h"
#include "runtime/train/make_step.h"

namespace rivulet::runtime {
namespace {

using sync::policy::Mode;

constexpr std::uint64_t magic = 0x3159504f43564c52;  // "RLVCOPY1"
constexpr std::size_t checked_bytes = copy_head_bytes - sizeof(std::uint64_t);
constexpr std::uint32_t members_max = 4096;

Error bad(const std::string& why) {
  return {ErrorCode::protocol, "a message of a copied state " + why};
}

std::uint64_t sum_of(std::span<const std::byte> bytes) {
  return rivulet::digest_of(bytes).low;
}

/// The value's bytes: minus zero and NaN are values.
template <class Bits>
bool is_zero(const std::byte* value) {
  Bits bits;
  std::memcpy(&bits, value, sizeof bits);
  return bits == 0;
}

bool is_zero(const GradientView& sum, std::size_t i) {
  const std::byte* value = sum.data + i * bytes_of(sum.scalar);
  return sum.scalar == Scalar::f32 ? is_zero<std::uint32_t>(value) : is_zero<std::uint64_t>(value);
}

std::vector<std::uint32_t> positions_of_values(const GradientView& sum) {
  std::vector<std::uint32_t> positions;
  for (std::size_t i = 0; i < sum.count; ++i)
    if (!is_zero(sum, i)) positions.push_back(static_cast<std::uint32_t>(i));
  return positions;
}

void append(std::vector<std::byte>& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void put_sum(std::vector<std::byte>& out, const GradientView& sum) {
  const std::size_t size = bytes_of(sum.scalar);
  const auto positions = positions_of_values(sum);
  const bool dense = positions.size() * (sizeof(std::uint32_t) + size) >= sum.bytes();
  sync::FieldWriter(out).put(dense);
  if (dense) return append(out, sum.host_bytes());
  sync::FieldWriter(out).put(positions);
  for (const std::uint32_t at : positions) append(out, sum.host_bytes().subspan(at * size, size));
}

bool get_sum(sync::FieldReader& bytes, const GradientView& sum) {
  const std::size_t size = bytes_of(sum.scalar);
  bool dense = false;
  bytes.get(dense);
  if (dense) {
    const auto values = bytes.cut(sum.bytes());
    if (bytes.fine()) std::ranges::copy(values, sum.host_bytes().begin());
    return bytes.fine();
  }
  std::vector<std::uint32_t> positions;
  bytes.get(positions);
  const auto values = bytes.cut(positions.size() * size);
  const bool ascending =
      std::ranges::adjacent_find(positions, std::ranges::greater_equal()) == positions.end();
  if (!bytes.fine() || !ascending || (!positions.empty() && positions.back() >= sum.count)) return false;
  std::ranges::fill(sum.host_bytes(), std::byte{0});
  for (std::size_t i = 0; i < positions.size(); ++i)
    std::memcpy(sum.data + positions[i] * size, values.data() + i * size, size);
  return true;
}

Status put_table(std::vector<std::byte>& out, const sync::FactsTable& table) {
  sync::FieldWriter(out).put(static_cast<std::uint32_t>(table.size()));
  for (std::size_t rank = 0; rank < table.size(); ++rank) {
    const auto section = sync::encode_section(table.sections[rank]);
    if (!section) return section.error();
    sync::FieldWriter(out).put(sync::encode_head(table.facts[rank]));
    sync::FieldWriter(out).put(section.value());
  }
  return ok();
}

Status get_table(sync::FieldReader& bytes, sync::FactsTable& table) {
  std::uint32_t members = 0;
  bytes.get(members);
  if (!bytes.fine() || members == 0 || members > members_max) return bad("has an invalid number of devices");
  for (std::uint32_t rank = 0; rank < members; ++rank) {
    std::vector<std::byte> head;
    std::vector<std::byte> section;
    bytes.get(head);
    bytes.get(section);
    if (!bytes.fine()) return bad("is too short");
    auto facts = sync::decode_head(head);
    if (!facts) return facts.error();
    auto more = sync::decode_section(section);
    if (!more) return more.error();
    table.facts.push_back(std::move(facts).value());
    table.sections.push_back(std::move(more).value());
  }
  return ok();
}

/// The members compare their digests in digest rounds; a copy compares its own with theirs.
Status check_digest(const AgreedState& state, const sync::FactsTable& table, devices::Device& device) {
  const auto shown = std::ranges::find_if(
      table.facts, [](const sync::Facts& facts) { return (facts.flags & sync::flag_digest) != 0; });
  if (shown == table.facts.end()) return ok();
  const auto digest = digest_of(state, device);
  if (!digest) return digest.error();
  if (digest.value() == shown->digest) return ok();
  return Error{ErrorCode::protocol, "the copied state " + text_of(state.stamp) + " has digest " +
                                        digest.value().hex() + ", that of the group has " +
                                        shown->digest.hex()};
}

Status check_round(const AgreedState& state, const CopiedRound& round) {
  sync::ViewSpec names;
  std::vector<std::string> ranks;
  for (std::size_t rank = 0; rank < round.table.size(); ++rank) {
    ranks.push_back("rank " + std::to_string(rank));
    if (round.table.facts[rank].step != state.stamp.step)
      return bad("has a round after step " + std::to_string(round.table.facts[rank].step) +
                 ", the copy is at step " + std::to_string(state.stamp.step));
  }
  names.members = std::move(ranks);
  return check_announced(round.table, names, state, {}, {});
}

}  // namespace

CopyHeadBytes encode(const CopyHead& head) {
  std::vector<std::byte> fields;
  sync::FieldWriter out(fields);
  for (const std::uint64_t value : {magic, head.token, static_cast<std::uint64_t>(head.part), head.first,
                                    head.total, head.bytes, head.sum})
    out.put(value);
  out.put(sum_of(fields));
  CopyHeadBytes bytes{};
  std::ranges::copy(fields, bytes.begin());
  return bytes;
}

Result<CopyHead> decode_copy_head(std::span<const std::byte> bytes) {
  if (bytes.size() != copy_head_bytes) return bad("has a head of the wrong length");
  sync::FieldReader in(bytes);
  std::uint64_t mark = 0;
  std::uint64_t part = 0;
  std::uint64_t sum = 0;
  CopyHead head;
  in.get(mark);
  in.get(head.token);
  in.get(part);
  for (auto* value : {&head.first, &head.total, &head.bytes, &head.sum, &sum}) in.get(*value);
  if (mark != magic || sum != sum_of(bytes.first(checked_bytes))) return bad("has an invalid head");
  if (part < 1 || part > 3) return bad("is of unknown kind " + std::to_string(part));
  head.part = static_cast<CopyPart>(part);
  return head;
}

Result<std::vector<std::byte>> encode_round(const CopiedRound& round, const GradientView& sum) {
  std::vector<std::byte> out;
  sync::FieldWriter fields(out);
  fields.put(round.view);
  fields.put(round.mode);
  fields.put(round.learning_rate_factor);
  if (auto put = put_table(out, round.table); !put) return put.error();
  fields.put(round.memory);
  if (round.mode != Mode::idle) put_sum(out, sum);
  return out;
}

Result<CopiedRound> read_round(sync::FieldReader& bytes, const GradientView& sum) {
  CopiedRound round;
  bytes.get(round.view);
  bytes.get(round.mode);
  bytes.get(round.learning_rate_factor);
  if (auto table = get_table(bytes, round.table); !table) return table.error();
  bytes.get(round.memory);
  const Mode mode = round.mode;
  if (!bytes.fine() || (mode != Mode::idle && mode != Mode::gradients && mode != Mode::delta))
    return bad("has an invalid round");
  if (mode != Mode::idle && !get_sum(bytes, sum)) return bad("has an invalid sum");
  return round;
}

std::size_t rounds_bytes_max(const GradientView& sum) {
  return copy_piece_bytes + sum.bytes() + members_max * sync::facts_section_max_bytes;
}

Status apply_round(AgreedState& state, const CopiedRound& round, const GradientView& sum,
                   const devices::OptimizerConfig& optimizer, devices::Device& device) {
  if (auto fits = check_round(state, round); !fits) return fits;
  if (auto equal = check_digest(state, round.table, device); !equal) return equal;
  if (round.mode == Mode::idle) {
    fold_round(state, round.table, round.view, true);
    return ok();
  }
  sync::policy::Decision decision;  // a step reads only these two
  decision.mode = round.mode;
  decision.learning_rate_factor = round.learning_rate_factor;
  const auto made =
      make_step(state, {optimizer, device, round.table, decision, round.memory, round.view}, sum);
  return made ? ok() : made.error();
}

}  // namespace rivulet::runtime
