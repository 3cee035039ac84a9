#include "sync/message/facts.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/check.h"
#include "sync/message/field_bytes.h"

namespace rivulet::sync {
namespace {

constexpr std::uint32_t magic = 0x31465652;  // "RVF1"
constexpr std::size_t checksum_bytes = 8;

constexpr std::uint32_t type_intervals = 1;
constexpr std::uint32_t type_runs = 2;
constexpr std::uint32_t type_step_rows = 3;
constexpr std::uint32_t type_private_state = 4;
constexpr std::uint32_t type_steps_ahead = 5;

Error broken(std::string what) {
  return {ErrorCode::protocol, "facts: " + std::move(what)};
}

std::size_t head_bytes(const Facts& facts) {
  return facts_head_bytes + sizeof(float) * facts.measurements.size();
}

std::uint64_t checksum_of(std::span<const std::byte> head) {
  return digest_of(head.first(head.size() - checksum_bytes)).low;
}

void put_body(std::vector<std::byte>& out, std::uint32_t type, std::span<const std::byte> body) {
  FieldWriter writer(out);
  writer.put(type);
  writer.put(static_cast<std::uint32_t>(body.size()));
  out.insert(out.end(), body.begin(), body.end());
}

template <class T>
void put_entry(std::vector<std::byte>& out, std::uint32_t type, const std::vector<T>& items) {
  if (!items.empty()) put_body(out, type, bytes_of_fields(items));
}

/// Seven bits per byte, lowest first; the highest bit marks a continuation. Row counts are small.
void put_varints(std::vector<std::byte>& out, std::uint32_t type, const std::vector<std::uint32_t>& items) {
  if (items.empty()) return;
  std::vector<std::byte> body;
  body.reserve(2 * items.size());
  for (std::uint32_t item : items) {
    for (; item >= 0x80; item >>= 7U) body.push_back(static_cast<std::byte>((item & 0x7fU) | 0x80U));
    body.push_back(static_cast<std::byte>(item));
  }
  put_body(out, type, body);
}

/// Reads the encoding of put_varints() and rejects any other.
bool get_varints(std::span<const std::byte> body, std::vector<std::uint32_t>& items) {
  if (!items.empty() || body.empty()) return false;
  std::uint64_t item = 0;
  unsigned shift = 0;
  for (const std::byte byte : body) {
    const auto bits = std::to_integer<std::uint64_t>(byte);
    item |= (bits & 0x7fU) << shift;
    shift += 7;
    if ((bits & 0x80U) != 0 && shift < 35) continue;
    const bool longer_than_needed = bits == 0 && shift > 7;
    if ((bits & 0x80U) != 0 || item > std::numeric_limits<std::uint32_t>::max() || longer_than_needed)
      return false;
    items.push_back(static_cast<std::uint32_t>(item));
    item = 0;
    shift = 0;
  }
  return shift == 0;
}

/// Requires that the list fills its entry and occurs once.
template <class T>
bool get_entry(std::span<const std::byte> body, std::vector<T>& items) {
  FieldReader in(body);
  if (!items.empty()) return false;
  in.get(items);
  return in.fine() && in.empty();
}

/// Normalizes fields that do not affect plans, and NaNs, to the values of a record.
Facts as_recorded(Facts f) {
  place_fields(f, [](const char*, auto& place) { place = {}; });
  if ((f.flags & flag_digest) == 0) f.digest = {};
  const auto quiet = [](auto& v) {
    if (std::isnan(v)) v = std::numeric_limits<std::remove_reference_t<decltype(v)>>::quiet_NaN();
  };
  measured_fields(f, [&](const char*, auto& v) {
    if constexpr (std::is_floating_point_v<std::remove_reference_t<decltype(v)>>) quiet(v);
  });
  for (float& v : f.measurements) quiet(v);
  return f;
}

}  // namespace

std::vector<std::byte> encode_head(const Facts& facts) {
  std::vector<std::byte> head;
  head.reserve(head_bytes(facts));
  FieldWriter writer(head);
  writer.put(magic);
  writer.put(facts_version);
  writer.put(facts);
  RIVULET_CHECK(head.size() + checksum_bytes <= head_bytes(facts), "facts exceed the size of their head");
  head.resize(head_bytes(facts));
  const std::uint64_t sum = checksum_of(head);
  std::memcpy(head.data() + head.size() - checksum_bytes, &sum, checksum_bytes);
  return head;
}

std::uint64_t hash_of(const FactsTable& table) {
  std::vector<std::byte> bytes;
  bytes.reserve(table.size() * facts_head_bytes);
  FieldWriter writer(bytes);
  for (std::size_t i = 0; i < table.size(); ++i) {
    writer.put(as_recorded(table.facts[i]));
    writer.put(table.sections[i]);
  }
  return digest_of(bytes).low;
}

Result<Facts> decode_head(std::span<const std::byte> bytes) {
  constexpr std::size_t most = facts_head_bytes + sizeof(float) * facts_measurements_max;
  if (bytes.size() < facts_head_bytes || bytes.size() > most)
    return broken(std::to_string(bytes.size()) + " bytes, expected " + std::to_string(facts_head_bytes) +
                  " plus the controllers' measurements");
  FieldReader in(bytes);
  std::uint32_t seen_magic = 0;
  std::uint32_t version = 0;
  in.get(seen_magic);
  in.get(version);
  if (seen_magic != magic) return broken("wrong magic");
  if (version != facts_version)
    return broken("version " + std::to_string(version) + ", this build supports " +
                  std::to_string(facts_version));
  std::uint64_t sum = 0;
  std::memcpy(&sum, bytes.data() + bytes.size() - checksum_bytes, checksum_bytes);
  if (sum != checksum_of(bytes)) return broken("checksum differs");
  Facts facts;
  in.get(facts);
  if (!in.fine() || head_bytes(facts) != bytes.size()) return broken("unexpected number of measurements");
  if (facts.section_bytes > facts_section_max_bytes)
    return broken("section of " + std::to_string(facts.section_bytes) + " bytes is over the limit");
  return facts;
}

Result<std::vector<std::byte>> encode_section(const FactsSection& section) {
  std::vector<std::byte> out;
  put_entry(out, type_intervals, section.more_intervals);
  put_entry(out, type_runs, section.runs);
  put_varints(out, type_step_rows, section.step_rows);
  put_entry(out, type_private_state, section.private_state);
  put_varints(out, type_steps_ahead, section.steps_ahead);
  if (out.size() > facts_section_max_bytes)
    return broken("section of " + std::to_string(out.size()) + " bytes is over the limit");
  return out;
}

Result<FactsSection> decode_section(std::span<const std::byte> bytes) {
  if (bytes.size() > facts_section_max_bytes) return broken("section is over the limit");
  FactsSection section;
  FieldReader in(bytes);
  while (in.fine() && !in.empty()) {
    std::uint32_t type = 0;
    std::uint32_t length = 0;
    in.get(type);
    in.get(length);
    const auto body = in.cut(length);
    if (!in.fine()) return broken("section is truncated");
    if (type == type_intervals && !get_entry(body, section.more_intervals))
      return broken("interval list is invalid");
    if (type == type_runs && !get_entry(body, section.runs))
      return broken("list of skipped ranges is invalid");
    if (type == type_step_rows && !get_varints(body, section.step_rows))
      return broken("rows of local steps are invalid");
    if (type == type_private_state && !get_entry(body, section.private_state))
      return broken("digest of the private state is invalid");
    if (type == type_steps_ahead && !get_varints(body, section.steps_ahead))
      return broken("steps ahead are invalid");
  }
  return section;
}

bool any_flag(const FactsTable& table, std::uint32_t flag) {
  return std::any_of(table.facts.begin(), table.facts.end(),
                     [&](const Facts& f) { return (f.flags & flag) != 0; });
}

std::uint32_t steps_behind(const Facts& facts, const FactsSection& section) {
  const auto trained = [](const RowInterval& interval) { return interval.rows_trained > 0; };
  const auto more = std::ranges::count_if(section.more_intervals, trained);
  const std::size_t intervals = static_cast<std::size_t>(more) + (trained(facts.interval) ? 1 : 0);
  const std::size_t steps = intervals > 0 ? section.step_rows.size() / intervals : 0;
  return static_cast<std::uint32_t>(std::max<std::size_t>(1, steps));
}

double ready_seconds(const FactsTable& table, std::size_t rank) {
  const Facts& facts = table.facts[rank];
  const std::uint32_t steps = rank < table.sections.size() ? steps_behind(facts, table.sections[rank]) : 1;
  return double{facts.wait_seconds} + double{facts.compute_seconds} * steps;
}

}  // namespace rivulet::sync
