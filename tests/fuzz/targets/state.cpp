// The image of an agreed state, from a checkpoint file or a peer. An accepted image without parts of newer
// builds equals, byte for byte, what this program would have written. Allocations never exceed the size of
// the model.
#include "core/check.h"
#include "core/sha256.h"
#include "runtime/state/state_image.h"
#include "tests/fuzz/bytes.h"

namespace rivulet::fuzz {
namespace {

using namespace runtime;

constexpr std::size_t section_head = 24;  // tag 4, zero 4, length 8, checksum 8
constexpr std::size_t hash_bytes = sizeof(Sha256);

const StateOwner& owner() {
  static const StateOwner value{
      "m", "pumps", {"readings", "more"}, {{"features", {"temp", "rms"}}, {"classes", {"ok", "fault"}}}};
  return value;
}

const devices::ModelLayout& layout() {
  static const devices::ModelLayout value{Scalar::f32, 20, 3, {}, {}};
  return value;
}

devices::Device& device() {
  static const auto value = devices::make_host_device();
  return *value;
}

void run(Input input) {
  const auto head = decode_state_head(input, input.size());
  const auto decoded = decode_state(input, {owner(), layout(), device()});
  if (!decoded) {
    const auto code = decoded.error().code;
    RIVULET_CHECK((code == ErrorCode::bad_record || code == ErrorCode::invalid_config) &&
                      !decoded.error().message.empty(),
                  "refused in words");
    return;
  }
  const auto& [state, claimed, hash, skipped] = decoded.value();
  RIVULET_CHECK(head && head.value().stamp == state.stamp && head.value().digest == claimed,
                "a list of files matches the file");
  if (skipped > 0 || number_at<std::uint32_t>(input, 8) != state_image_version) return;  // of another build
  StateOwner writer = owner();
  if (encode_state(writer, state, claimed).size() > input.size()) writer.topics.pop_back();
  if (encode_state(writer, state, claimed).size() > input.size()) writer.topics.pop_back();
  const auto again = encode_state(writer, state, claimed);
  RIVULET_CHECK(std::ranges::equal(again, input), "accepted, so exactly what would have been written");
  RIVULET_CHECK(hash_in(again) == hash, "the hash is of these bytes");
  RIVULET_CHECK(input.size() <= state_image_max(layout()), "no image is longer");
}

void seal_sections(Bytes& bytes) {
  const std::size_t end = bytes.size() - hash_bytes;
  for (std::size_t at = state_head_bytes; at + section_head <= end;) {
    const auto size = number_at<std::uint64_t>(bytes, at + 8);
    if (size > end - at - section_head) return;
    put_number(std::span(bytes), at + 16, digest_of(Input(bytes).subspan(at + section_head, size)).low);
    at += section_head + size;
  }
}

void seal(Bytes& bytes) {
  if (bytes.size() < state_head_bytes + hash_bytes) return;
  put_number(std::span(bytes), 16, static_cast<std::uint64_t>(bytes.size()));
  put_number(std::span(bytes), 56, digest_of(Input(bytes).first(56)).low);
  seal_sections(bytes);
  const auto hash = sha256_of(Input(bytes).first(bytes.size() - hash_bytes));
  std::ranges::copy(hash, bytes.end() - static_cast<std::ptrdiff_t>(hash_bytes));
}

AgreedState state_of(float x) {
  AgreedState state{devices::ModelState::create(layout(), device()).value(), {3, 349}, 600, {}};
  for (const auto& numbers :
       {state.model.parameters(), state.model.optimizer_array(0), state.model.buffers()})
    for (float& y : numbers.as<float>()) y = x += 0.25F;
  return state;
}

std::vector<Bytes> seeds() {
  AgreedState state = state_of(1);
  std::vector<Bytes> all{encode_state(owner(), state, digest_of(state, device()).value())};
  auto& progress = state.partitions[{0, 0}];
  progress = {{7, 0}, {1234, 3}, 1200, 10, 3, {30, 0, 4}, {}};
  progress.runs = {{{0, 0}, {20, 0}, {50, 0}, 30, 0},
                   {{0, 0}, {60, 0}, {64, 0}, 4, 2},
                   {{0, 0}, {90, 1}, {94, 0}, 3, fate_hole}};
  state.partitions[{0, 7}] = {};
  state.partitions[{2, 5}] = {{5, 1}, {9'000'000'000, 4'000'000'000}, 9'000'000'000, 5, 0, {}, {}};
  all.push_back(encode_state(owner(), state, digest_of(state, device()).value()));
  all.push_back(
      encode_state({"m", "pumps", {"readings"}, owner().meaning}, state, digest_of(state, device()).value()));
  return all;
}

}  // namespace

extern const Target target_state;
const Target target_state{"state", run, seeds, seal};

}  // namespace rivulet::fuzz
