// Saved states, mutated from a seed: an accepted one equals, byte for byte, what this program would have
// written for the state that it read. Nothing larger than the model is ever allocated.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "core/rng.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "tests/support/effort.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

using Bytes = std::vector<std::byte>;
using Span = std::span<const std::byte>;

const StateOwner fuzz_owner{"m", "pumps", {"readings", "more"}};
constexpr std::size_t section_head = 24;  // tag 4, zero 4, length 8, checksum 8
constexpr std::size_t hash_bytes = 32;

/// A host device that counts requested memory.
class CountingDevice final : public devices::Device {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "counting"; }
  Result<std::unique_ptr<devices::Memory>> allocate(std::size_t bytes) override {
    asked += bytes;
    return host_->allocate(bytes);
  }
  Result<std::unique_ptr<devices::Memory>> allocate_shared(std::size_t bytes) override {
    return allocate(bytes);
  }
  Result<GradientView> to_host(const GradientView& own) override { return host_->to_host(own); }
  Status from_host(const GradientView& host, const GradientView& own) override {
    return host_->from_host(host, own);
  }
  void charge(const devices::Work&) override {}
  std::size_t asked = 0;

 private:
  std::unique_ptr<devices::Device> host_ = devices::make_host_device();
};

devices::ModelLayout layout_of(std::size_t parameters, std::size_t buffers) {
  return {Scalar::f32, parameters, buffers, {}, {}};
}

std::size_t array_bytes(const devices::ModelLayout& layout) {
  return (2 * layout.parameters + layout.buffers) * bytes_of(layout.scalar);
}

AgreedState drawn_state(const devices::ModelLayout& layout, devices::Device& device, Rng& rng) {
  AgreedState state{devices::ModelState::create(layout, device).value(), {3, 349}, 600, {}};
  for (const auto& numbers :
       {state.model.parameters(), state.model.optimizer_array(0), state.model.buffers()})
    for (float& x : numbers.as<float>()) x = static_cast<float>(rng.normal());
  state.partitions[{0, 0}] = {{7, 0}, {1234, 3}, 1200, 10, 3, {30, 0, 4}, {}};
  state.partitions[{0, 0}].runs = {{{0, 0}, {20, 0}, {50, 0}, 30, 0},
                                   {{0, 0}, {60, 0}, {64, 0}, 4, 2},
                                   {{0, 0}, {90, 1}, {94, 0}, 3, fate_hole}};
  state.partitions[{0, 7}] = {};
  state.partitions[{2, 5}] = {{5, 1}, {9'000'000'000, 4'000'000'000}, 9'000'000'000, 5, 0, {}, {}};
  return state;
}

AgreedState with_lineage(const AgreedState& state, std::uint64_t lineage, devices::Device& device) {
  AgreedState copy{devices::ModelState::create(state.model.layout(), device).value(), {}, 0, {}};
  copy.copy_from(state);
  copy.stamp.lineage = lineage;
  return copy;
}

Bytes encoded(const StateOwner& owner, const AgreedState& state, devices::Device& device) {
  return encode_state(owner, state, digest_of(state, device).value());
}

std::uint64_t word_at(const Bytes& bytes, std::size_t at) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
void put_word(Bytes& bytes, std::size_t at, std::uint64_t value, std::size_t size = sizeof(std::uint64_t)) {
  std::memcpy(bytes.data() + at, &value, std::min(size, bytes.size() - at));
}

/// Start of each section, including its head, as far as lengths are valid.
std::vector<std::pair<std::size_t, std::size_t>> sections_of(const Bytes& bytes) {
  std::vector<std::pair<std::size_t, std::size_t>> all;
  if (bytes.size() < state_head_bytes + hash_bytes) return all;
  const std::size_t end = bytes.size() - hash_bytes;
  for (std::size_t at = state_head_bytes; at + section_head <= end;) {
    const std::uint64_t size = word_at(bytes, at + 8);
    if (size > end - at - section_head) break;
    all.emplace_back(at, section_head + static_cast<std::size_t>(size));
    at += all.back().second;
  }
  return all;
}

/// As a careful forger does: corrects length and all checksums, so that the deeper checks are reached.
void seal(Bytes& bytes) {
  if (bytes.size() < state_head_bytes + hash_bytes) return;
  put_word(bytes, 16, bytes.size());
  put_word(bytes, 56, rivulet::digest_of(Span(bytes).first(56)).low);
  for (const auto& [at, size] : sections_of(bytes))
    put_word(bytes, at + 16,
             rivulet::digest_of(Span(bytes).subspan(at + section_head, size - section_head)).low);
  const auto hash = sha256_of(Span(bytes).first(bytes.size() - hash_bytes));
  std::ranges::copy(hash, bytes.end() - static_cast<std::ptrdiff_t>(hash_bytes));
}

std::ptrdiff_t offset(std::size_t at) {
  return static_cast<std::ptrdiff_t>(at);
}

class Mutator {
 public:
  Mutator(Rng& rng, std::vector<Bytes> donors) : rng_(rng), donors_(std::move(donors)) {}

  void mutate(Bytes& bytes) {
    for (std::uint64_t n = 1 + rng_.below(3); n > 0; --n) once(bytes);
    if (rng_.below(4) != 0) seal(bytes);
  }

 private:
  [[nodiscard]] std::size_t below(std::size_t bound) { return static_cast<std::size_t>(rng_.below(bound)); }

  void once(Bytes& bytes) {
    if (bytes.empty()) return;
    switch (rng_.below(8)) {
      case 0: bytes.resize(below(bytes.size())); break;
      case 1: bytes.resize(bytes.size() + 1 + below(200), static_cast<std::byte>(rng_.next())); break;
      case 2: bytes[below(bytes.size())] ^= static_cast<std::byte>(1U << rng_.below(8)); break;
      case 3: put_word(bytes, below(bytes.size()), strange(), std::size_t{1} << rng_.below(4)); break;
      case 4: field(bytes); break;
      case 5: cut_or_copy(bytes); break;
      default: section(bytes); break;
    }
  }

  std::uint64_t strange() {
    constexpr std::array<std::uint64_t, 10> words{
        0,    1, 2, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 0x7fffffffffffffff, 0x8000000000000000,
        ~0ULL};
    return rng_.below(3) == 0 ? rng_.next() : words[below(words.size())];
  }

  /// A field of the head or of a section's head.
  void field(Bytes& bytes) {
    const auto all = sections_of(bytes);
    const bool of_head = all.empty() || rng_.below(2) == 0;
    const std::size_t at = of_head ? 4 * below(state_head_bytes / 4)
                                   : all[below(all.size())].first + 4 * below(section_head / 4);
    if (at + sizeof(std::uint64_t) > bytes.size()) return;
    const std::uint64_t near = word_at(bytes, at);
    put_word(bytes, at, rng_.below(2) == 0 ? near + rng_.below(5) - 2 : strange(),
             rng_.below(2) == 0 ? 4 : 8);
  }

  void cut_or_copy(Bytes& bytes) {
    const std::size_t from = below(bytes.size());
    const std::size_t size = 1 + below(std::min<std::size_t>(bytes.size() - from, 64));
    const Bytes piece(bytes.begin() + offset(from), bytes.begin() + offset(from + size));
    if (rng_.below(2) == 0) bytes.erase(bytes.begin() + offset(from), bytes.begin() + offset(from + size));
    const std::size_t to = below(bytes.size() + 1);
    if (rng_.below(2) == 0) bytes.insert(bytes.begin() + offset(to), piece.begin(), piece.end());
  }

  /// Swaps, duplicates, removes or resizes a section, or takes it from a state of another model or shape.
  void section(Bytes& bytes) {
    const auto all = sections_of(bytes);
    if (all.empty()) return;
    const auto [at, size] = all[below(all.size())];
    const Bytes piece(bytes.begin() + offset(at), bytes.begin() + offset(at + size));
    const auto& donor = donors_[below(donors_.size())];
    const auto theirs = sections_of(donor);
    const auto [from, count] = theirs[below(theirs.size())];
    switch (rng_.below(5)) {
      case 0: bytes.insert(bytes.begin() + offset(at), piece.begin(), piece.end()); break;
      case 1: bytes.erase(bytes.begin() + offset(at), bytes.begin() + offset(at + size)); break;
      case 2: {
        bytes.erase(bytes.begin() + offset(at), bytes.begin() + offset(at + size));
        const auto to = sections_of(bytes);
        const std::size_t place = to.empty() ? state_head_bytes : to[below(to.size())].first;
        if (place <= bytes.size()) bytes.insert(bytes.begin() + offset(place), piece.begin(), piece.end());
        break;
      }
      case 3: {  // longer or shorter, with a matching head
        const std::size_t body = at + section_head + below(size - section_head + 1);
        const bool longer = rng_.below(2) == 0;
        const std::size_t by =
            std::min(std::size_t{4} << rng_.below(5), longer ? size_max : at + size - body);
        if (longer)
          bytes.insert(bytes.begin() + offset(body), by, static_cast<std::byte>(rng_.next()));
        else
          bytes.erase(bytes.begin() + offset(body), bytes.begin() + offset(body + by));
        put_word(bytes, at + 8, longer ? size - section_head + by : size - section_head - by);
        break;
      }
      default:
        bytes.erase(bytes.begin() + offset(at), bytes.begin() + offset(at + size));
        bytes.insert(bytes.begin() + offset(at), donor.begin() + offset(from),
                     donor.begin() + offset(from + count));
    }
  }

  static constexpr std::size_t size_max = 64;
  Rng& rng_;
  std::vector<Bytes> donors_;
};

struct Fuzz {
  explicit Fuzz(std::uint64_t seed) : rng(seed) {
    state.emplace(drawn_state(layout, device, rng));
    whole = encoded(fuzz_owner, *state, device);
    digest = digest_of(*state, device).value();
  }
  Mutator mutator() {
    std::vector<Bytes> donors{encoded(fuzz_owner, drawn_state(layout, device, rng), device)};
    for (const auto& other : {layout_of(21, 3), layout_of(20, 0), layout_of(3, 20)})
      donors.push_back(
          encoded({"other", fuzz_owner.job, fuzz_owner.topics}, drawn_state(other, device, rng), device));
    return {rng, std::move(donors)};
  }
  Rng rng;
  CountingDevice device;
  devices::ModelLayout layout = layout_of(20, 3);
  std::optional<AgreedState> state;
  Bytes whole;
  Digest digest;
};

}  // namespace

TEST_CASE("Fuzz: a mutated state is refused, or it is exactly a state that could have been written") {
  const std::uint64_t seed = seed_or(20'261'122);
  Fuzz fuzz(seed);
  auto mutator = fuzz.mutator();
  REQUIRE(decode_state(fuzz.whole, {fuzz_owner, fuzz.layout, fuzz.device}));
  const int rounds = repetitions(30'000, 3'000'000);
  int accepted = 0;
  int asked_for_memory = 0;
  for (int round = 0; round < rounds; ++round) {
    Bytes bytes = fuzz.whole;
    mutator.mutate(bytes);
    fuzz.device.asked = 0;
    const auto decoded = decode_state(bytes, {fuzz_owner, fuzz.layout, fuzz.device});
    INFO("RIVULET_SEED=" << seed << " round " << round);
    asked_for_memory += fuzz.device.asked > 0 ? 1 : 0;
    if (fuzz.device.asked > array_bytes(fuzz.layout)) FAIL("more memory than the model has numbers");
    if (!decoded) {  // damaged, or intact and of another job
      const ErrorCode code = decoded.error().code;
      if ((code != ErrorCode::bad_record && code != ErrorCode::invalid_config) ||
          decoded.error().message.empty())
        FAIL(decoded.error().message);
      continue;
    }
    ++accepted;
    const auto& [state, claimed, hash, skipped] = decoded.value();
    if (skipped > 0) continue;  // a section that only a newer build reads
    if (encode_state(fuzz_owner, state, claimed) != bytes)
      FAIL("accepted, but no encoder writes these bytes");
    // The comparison that every user of a decoded state makes first: the digest covers all except the
    // lineage.
    if (digest_of(state, fuzz.device).value() == fuzz.digest &&
        encode_state(fuzz_owner, with_lineage(state, fuzz.state->stamp.lineage, fuzz.device), fuzz.digest) !=
            fuzz.whole)
      FAIL("another state with the same digest");
  }
  // Both outcomes of the last checks must occur, or this fuzz is too shallow.
  CHECK(accepted > rounds / 100);
  CHECK(asked_for_memory > accepted);
  MESSAGE(accepted << " of " << rounds << " accepted, " << asked_for_memory << " got as far as memory");
}

TEST_CASE("Fuzz: among mutated checkpoint files the one that is whole is found, and no other is believed") {
  const std::uint64_t seed = seed_or(20'261'123);
  Fuzz fuzz(seed);
  auto mutator = fuzz.mutator();
  const TempDir folder;
  CheckpointFolder files(folder.path().string());
  REQUIRE(files.write(fuzz_owner, *fuzz.state, fuzz.digest));
  for (int round = 0; round < repetitions(300, 20'000); ++round) {
    Bytes bytes = fuzz.whole;
    put_word(bytes, 32, 350 + fuzz.rng.below(3));  // of a newer version
    if (fuzz.rng.below(2) == 0) seal(bytes);
    mutator.mutate(bytes);
    std::ofstream(folder.path() / "3.350.ckpt", std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), offset(bytes.size()));
    std::vector<std::string> problems;
    const auto newest = files.newest({fuzz_owner, fuzz.layout, fuzz.device}, problems);
    INFO("RIVULET_SEED=" << seed << " round " << round);
    REQUIRE(newest);
    // The step is in the digest: a file with another one is rejected.
    CHECK(digest_of(newest->state, fuzz.device).value() == fuzz.digest);
    CHECK(newest->state.stamp.step == 349);
  }
}
