// Messages of a background copy, as a device that joins reads them: a head of 64 bytes, then a body of
// rounds. What is applied leaves a state that can be saved and loaded.
#include <algorithm>

#include "core/check.h"
#include "core/digest.h"
#include "devices/optimizer.h"
#include "runtime/state/state_image.h"
#include "runtime/train/copy_message.h"
#include "tests/fuzz/bytes.h"
#include "tests/support/sgd.h"

namespace rivulet::fuzz {
namespace {

using namespace runtime;
using sync::policy::Mode;

constexpr std::size_t parameters = 4;
const StateOwner owner{"m", "job", {"a"}};

const devices::OptimizerConfig& optimizer() {
  static const auto sgd = devices::config_of({.learning_rate = 0.1});
  return sgd;
}

devices::ModelLayout layout() {
  devices::ModelLayout layout{Scalar::f32, parameters, 0, {{"weight", {parameters}, 0, parameters}}, {}};
  layout.optimizer_arrays = devices::arrays_of(*optimizer().entry);
  return layout;
}

GradientView view_of(std::vector<float>& numbers) {
  return {reinterpret_cast<std::byte*>(numbers.data()), numbers.size()};
}

void run(Input input) {
  static const auto device = devices::make_host_device();
  if (input.size() < copy_head_bytes) return;
  const auto head = decode_copy_head(input.first(copy_head_bytes));
  if (head)
    RIVULET_CHECK(std::ranges::equal(encode(head.value()), input.first(copy_head_bytes)), "all is read");
  AgreedState state{devices::ModelState::create(layout(), *device).value(), {2, 5}, 10, {}};
  state.partitions[{0, 0}] = {{0, 0}, {10, 0}, 10, 0, 0, {}, {}};
  std::vector<float> sum(parameters);
  sync::FieldReader bytes(input.subspan(copy_head_bytes));
  while (!bytes.empty()) {
    const auto round = read_round(bytes, view_of(sum));
    if (!round || !apply_round(state, round.value(), view_of(sum), optimizer(), *device)) return;
  }
  const auto digest = digest_of(state, *device).value();
  const auto image = encode_state(owner, state, digest);
  const auto back = decode_state(image, {owner, state.model.layout(), *device});
  RIVULET_CHECK(back, back ? "" : back.error().message);
}

sync::FactsTable table_at(std::uint64_t step, std::int64_t first, Mode mode) {
  sync::FactsTable table;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    sync::Facts facts{.view = 3, .round = step, .step = step, .rank = rank};
    if (rank == 0) {
      facts.rows = mode == Mode::idle ? 0 : 2;
      facts.interval = {.partition = {0, 0}, .first = {first, 0}, .next = {first + 2, 0}};
      facts.interval.rows_trained = facts.rows;
      facts.interval.holes = mode == Mode::idle ? 2 : 0;
    }
    table.facts.push_back(facts);
    table.sections.emplace_back();
    if (mode == Mode::idle && rank == 0)
      table.sections.back().runs = {{{0, 0}, {first, 0}, {first + 2, 0}, 2, fate_hole}};
  }
  return table;
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  std::vector<float> dense{1, 2, 3, 4};
  std::vector<float> sparse{0, 0, 3, 0};
  Bytes body;
  std::int64_t first = 10;
  std::uint64_t step = 5;
  for (const Mode mode : {Mode::gradients, Mode::delta, Mode::idle}) {
    const CopiedRound round{
        .view = 3, .mode = mode, .table = table_at(step++, first, mode), .memory = {{"auto", {1, 2}}}};
    first += 2;
    const auto bytes = encode_round(round, view_of(mode == Mode::delta ? sparse : dense)).value();
    append(body, bytes);
    CopyHead head{
        .token = 9, .part = CopyPart::rounds, .bytes = body.size(), .sum = rivulet::digest_of(body).low};
    Bytes message;
    append(message, encode(head));
    append(message, body);
    all.push_back(message);
  }
  return all;
}

}  // namespace

extern const Target target_copied;
const Target target_copied{"copied", run, seeds};

}  // namespace rivulet::fuzz
