// Messages of a background copy of the state: what is written is read, a copied round does what the group's
// step did, and wrong bytes are refused in words.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "runtime/train/copy_message.h"
#include "runtime/train/make_step.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::runtime;
using sync::policy::Mode;

namespace {

constexpr std::size_t parameters = 40;

const devices::OptimizerConfig& sgd() {
  static const auto config = devices::config_of({.learning_rate = 0.25, .momentum = 0.5});
  return config;
}

devices::Device& host() {
  static const auto device = devices::make_host_device();
  return *device;
}

AgreedState state_at(std::uint64_t step) {
  devices::ModelLayout layout{Scalar::f32, parameters, 0, {{"weight", {parameters}, 0, parameters}}, {}};
  layout.optimizer_arrays = devices::arrays_of(*sgd().entry);
  AgreedState state{devices::ModelState::create(layout, host()).value(), {2, step}, 10, {}};
  for (float& x : state.model.parameters().as<float>()) x = 1;
  return state;
}

GradientView view_of(std::vector<float>& numbers) {
  return {reinterpret_cast<std::byte*>(numbers.data()), numbers.size()};
}

/// A round of two devices that trains two rows of the first one's partition.
CopiedRound round_at(std::uint64_t step, Mode mode, std::uint32_t rows = 2) {
  CopiedRound round{
      .view = 7, .mode = mode, .learning_rate_factor = 0.5, .table = {}, .memory = {{"auto", {1, 2}}}};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    round.table.facts.push_back({.view = 70, .round = step, .step = step, .rank = rank});
    round.table.sections.emplace_back();
  }
  auto& first = round.table.facts[0];
  first.rows = rows;
  first.interval = {.partition = {0, 0}, .first = {0, 0}, .next = {2, 0}};
  first.interval.rows_trained = rows;
  first.interval.holes = 2 - rows;
  if (rows == 0) round.table.sections[0].runs = {{{0, 0}, {0, 0}, {2, 0}, 2, fate_hole}};
  return round;
}

/// Reads one round of `bytes`.
Result<CopiedRound> read(std::span<const std::byte> bytes, std::vector<float>& sum) {
  sync::FieldReader reader(bytes);
  auto round = read_round(reader, view_of(sum));
  if (round) CHECK(reader.empty());
  return round;
}

std::string why_not_applied(AgreedState state, const CopiedRound& round) {
  std::vector<float> sum(parameters, 1.0F);
  const auto applied = apply_round(state, round, view_of(sum), sgd(), host());
  return applied ? "" : applied.error().message;
}

}  // namespace

TEST_CASE("Copy: a head survives its bytes, and each flipped byte is found") {
  const CopyHead head{
      .token = 99, .part = CopyPart::image, .first = 1 << 20, .total = 5'000'000, .bytes = 7, .sum = 3};
  CopyHeadBytes bytes = encode(head);
  REQUIRE(decode_copy_head(bytes));
  CHECK(decode_copy_head(bytes).value() == head);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] ^= std::byte{1};
    CHECK_FALSE(decode_copy_head(bytes));
    bytes[i] ^= std::byte{1};
  }
  CHECK_FALSE(decode_copy_head(std::span(bytes).first(63)));
}

TEST_CASE("Copy: a sum survives bit for bit, dense or with few values, and few values take few bytes") {
  std::vector<float> dense(parameters, 0.125F);
  dense[3] = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> sparse(parameters, 0);
  sparse[0] = -0.0F;
  sparse[parameters - 1] = 5;
  std::size_t bytes_of_dense = 0;
  for (auto* sum : {&dense, &sparse, &dense}) {
    const auto bytes = encode_round(round_at(4, Mode::gradients), view_of(*sum));
    REQUIRE(bytes);
    std::vector<float> back(parameters, 77);
    REQUIRE(read(bytes.value(), back));
    CHECK(std::memcmp(back.data(), sum->data(), parameters * sizeof(float)) == 0);
    if (sum == &dense) bytes_of_dense = bytes.value().size();
    if (sum == &sparse) CHECK(bytes.value().size() + 4 * (parameters - 8) < bytes_of_dense);
  }
}

TEST_CASE("Copy: a copied round makes the step of the group: the same model, rows, offsets and memory") {
  for (const Mode mode : {Mode::gradients, Mode::delta, Mode::idle}) {
    const CopiedRound round = round_at(4, mode, mode == Mode::idle ? 0 : 2);
    std::vector<float> sum(parameters, 0.5F);
    AgreedState group = state_at(4);
    AgreedState copy = state_at(4);
    const auto bytes = encode_round(round, view_of(sum));
    REQUIRE(bytes);
    if (mode == Mode::idle) {
      fold_round(group, round.table, round.view, true);
    } else {
      sync::policy::Decision decision;
      decision.mode = mode;
      decision.learning_rate_factor = 0.5;
      REQUIRE(
          make_step(group, {sgd(), host(), round.table, decision, round.memory, round.view}, view_of(sum)));
    }
    std::vector<float> back(parameters);
    const auto read_back = read(bytes.value(), back);
    REQUIRE(read_back);
    REQUIRE(apply_round(copy, read_back.value(), view_of(back), sgd(), host()));
    CHECK(copy == group);
    CHECK(copy.stamp == Stamp{7, 5});
    CHECK(copy.partitions.at({0, 0}).next == RowCursor{2, 0});
    if (mode != Mode::idle) CHECK_FALSE(copy.model.parameters().as<float>()[0] == 1);
  }
}

TEST_CASE("Copy: a round that does not follow the state, or contradicts it, is refused") {
  CHECK(why_not_applied(state_at(4), round_at(4, Mode::gradients)).empty());
  CHECK(why_not_applied(state_at(5), round_at(4, Mode::gradients))
            .find("a round after step 4, the copy is at step 5") != std::string::npos);

  AgreedState state = state_at(4);
  CopiedRound round = round_at(4, Mode::gradients);
  round.table.facts[1].flags = sync::flag_digest;
  round.table.facts[1].digest = digest_of(state, host()).value();
  CHECK(why_not_applied(state_at(4), round).empty());
  round.table.facts[1].digest.low ^= 1;
  CHECK(why_not_applied(state_at(4), round).find("that of the group has") != std::string::npos);

  state.partitions[{0, 0}] = {{0, 0}, {1, 0}, 1, 0, 0, {}, {}};
  CHECK(
      why_not_applied(std::move(state), round_at(4, Mode::gradients)).find("are already part of the state") !=
      std::string::npos);
}

TEST_CASE("Copy: bytes that are cut, or say what cannot be, are refused") {
  std::vector<float> sum(parameters, 0);
  sum[7] = 1;
  const auto bytes = encode_round(round_at(4, Mode::gradients), view_of(sum)).value();
  std::vector<float> into(parameters);
  for (std::size_t kept = 0; kept < bytes.size(); ++kept) {
    sync::FieldReader reader{std::span(bytes).first(kept)};
    CHECK_FALSE(read_round(reader, view_of(into)));
  }
  // The position of the only value is before its 4 bytes at the end.
  auto wrong = bytes;
  const std::uint32_t outside = parameters;
  std::memcpy(wrong.data() + wrong.size() - 8, &outside, 4);
  CHECK_FALSE(read(wrong, into));
  auto skips = encode_round(round_at(4, Mode::skip), view_of(sum)).value();
  CHECK_FALSE(read(skips, into));
}
