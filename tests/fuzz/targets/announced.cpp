// Facts of a whole round with their sections: rows that pass the check of announced rows are folded into the
// agreed state, which must remain a state that can be saved and loaded. Input, for each of three ranks:
// length of the section (2 bytes), head (216), section.
#include <memory>

#include "core/check.h"
#include "runtime/state/announced.h"
#include "runtime/state/state_image.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/facts_bytes.h"

namespace rivulet::fuzz {
namespace {

using namespace runtime;
using sync::facts_head_bytes;

constexpr std::size_t ranks = 3;
constexpr std::size_t before_section = sizeof(std::uint16_t) + facts_head_bytes;

/// Bytes from one device; the facts' `section_bytes` does not determine the section's length here.
struct Part {
  std::size_t at = 0;
  std::size_t section = 0;
};

std::vector<Part> parts_of(Input input) {
  std::vector<Part> parts;
  for (std::size_t at = 0; parts.size() < ranks && input.size() - at >= before_section;) {
    const std::size_t left = input.size() - at - before_section;
    parts.push_back({at, std::min<std::size_t>(number_at<std::uint16_t>(input, at), left)});
    at += before_section + parts.back().section;
  }
  return parts;
}

/// An accepted section is equal when encoded again.
bool take(Input section, sync::FactsTable& table) {
  auto decoded = sync::decode_section(section);
  if (!decoded) return false;
  const auto again = sync::encode_section(decoded.value());
  RIVULET_CHECK(again && again.value().size() <= section.size(), "a section is not larger than its input");
  RIVULET_CHECK(sync::decode_section(again.value()).value() == decoded.value(), "a section survives");
  table.sections.push_back(std::move(decoded).value());
  return true;
}

bool take(Input input, const Part& part, sync::FactsTable& table) {
  const auto facts = sync::decode_head(input.subspan(part.at + sizeof(std::uint16_t), facts_head_bytes));
  if (!facts) return false;
  table.facts.push_back(facts.value());
  return take(input.subspan(part.at + before_section, part.section), table);
}

AgreedState state_before(devices::Device& device) {
  AgreedState state{devices::ModelState::create({.parameters = 1}, device).value(), {2, 5}, 10, {}};
  state.partitions[{0, 0}] = {{0, 0}, {10, 0}, 10, 0, 0, {}, {}};
  state.partitions[{0, 1}] = {{4, 0}, {9, 2}, 7, 2, 0, {}, {}};
  return state;
}

void check_saved_and_loaded(const AgreedState& state, devices::Device& device) {
  static const StateOwner owner{"m", "job", {"a"}};
  const auto digest = digest_of(state, device).value();
  const auto image = encode_state(owner, state, digest);
  const auto back = decode_state(image, {owner, state.model.layout(), device});
  RIVULET_CHECK(back, back ? "" : back.error().message);
  RIVULET_CHECK(digest_of(back.value().state, device).value() == digest,
                "the state that was saved is loaded");
}

void run(Input input) {
  static const auto device = devices::make_host_device();
  sync::FactsTable table;
  const auto parts = parts_of(input);
  if (parts.size() < ranks) return;
  for (const Part& part : parts)
    if (!take(input, part, table)) return;
  AgreedState state = state_before(*device);
  sync::ViewSpec view;
  view.members = {"a", "b", "c"};
  view.rank = 1;
  static const std::vector<PartitionId> own{{0, 1}};
  static const std::vector<std::string> topics{"a"};
  const Status fits = check_announced(table, view, state, own, topics);
  if (!fits) return;
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const Announced announced(table, rank);
    for (const RowInterval& interval : announced.intervals())
      fold_interval(state, interval, announced.runs());
  }
  check_saved_and_loaded(state, *device);
}

void seal(Bytes& input) {
  for (const Part& part : parts_of(input))
    seal_facts(std::span(input).subspan(part.at + sizeof(std::uint16_t), facts_head_bytes));
}

void put_rank(Bytes& out, const RowInterval& interval, const sync::FactsSection& section) {
  const auto more = sync::encode_section(section).value();
  sync::Facts facts;
  facts.interval = interval;
  facts.section_bytes = static_cast<std::uint32_t>(more.size());
  Bytes length(sizeof(std::uint16_t));
  put_number(length, 0, static_cast<std::uint16_t>(more.size()));
  append(out, length);
  append(out, sync::encode_head(facts));
  append(out, more);
}

std::vector<Bytes> seeds() {
  constexpr auto malformed = static_cast<std::uint32_t>(DropReason::malformed);
  Bytes quiet;
  for (std::size_t rank = 0; rank < ranks; ++rank) put_rank(quiet, {}, {});
  Bytes busy;
  put_rank(busy, {{0, 0}, {10, 0}, {20, 0}, 7, 2, 0, 1},
           {{}, {{{0, 0}, {11, 0}, {13, 0}, 2, malformed}, {{0, 0}, {15, 0}, {16, 0}, 1, fate_hole}}});
  put_rank(busy, {{0, 1}, {9, 2}, {10, 2}, 3, 0, 2, 0}, {});
  put_rank(busy, {}, {{{{0, 2}, {0, 0}, {1, 0}, 1, 0, 0, 0}, {{0, 3}, {5, 0}, {7, 0}, 2, 0, 0, 0}}, {}});
  return {quiet, busy};
}

}  // namespace

extern const Target target_announced;
const Target target_announced{"announced", run, seeds, seal};

}  // namespace rivulet::fuzz
