#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "core/clock.h"
#include "runtime/checkpoint/checkpointer.h"
#include "tests/support/example_state.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

constexpr Stamp stamp{3, 349};
const StateOwner owner{"m", "pumps", {"readings"}};

std::vector<std::byte> bytes_of_floats(std::size_t count) {
  std::vector<std::byte> bytes(count * sizeof(float));
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  return bytes;
}

struct Bench {
  TempDir folder;
  std::unique_ptr<devices::Device> device = devices::make_host_device();
  devices::ModelLayout layout = layout_of(20, 3);
  CheckpointFolder files{(folder.path() / "checkpoints").string()};
  std::vector<std::string> problems;

  [[nodiscard]] std::filesystem::path path(const Stamp& of, const char* suffix) const {
    return folder.path() / "checkpoints" / (text_of(of) + suffix);
  }
  void write(const Stamp& of) {
    AgreedState state = example_state(layout, *device);
    state.stamp = of;
    REQUIRE(files.write(owner, state, digest_of(state, *device).value()));
    REQUIRE(files.write_private({of, Scalar::f32, bytes_of_floats(20)}));
  }
  std::optional<PrivatePart> read(const Stamp& of) { return files.private_part(of, layout, problems); }
};

}  // namespace

TEST_CASE("Private part: comes back as it was, with and without something in it") {
  for (const std::size_t count : {0U, 20U}) {
    const PrivatePart part{stamp, Scalar::f32, bytes_of_floats(count)};
    const auto bytes = encode_private(part);
    CHECK(bytes.size() <= private_part_max(20, Scalar::f32));
    const auto back = decode_private(bytes, 20, Scalar::f32);
    REQUIRE_MESSAGE(back, back.error().message);
    CHECK(back.value() == part);
    for (const bool of_deltas : {true, false}) {
      PrivatePart own = part;
      own.of_deltas = of_deltas && count > 0;
      own.local_steps = 77;
      own.local_arrays = {bytes_of_floats(20), std::vector<std::byte>(80, std::byte{9})};
      const auto read = decode_private(encode_private(own), 20, Scalar::f32);
      REQUIRE_MESSAGE(read, read.error().message);
      CHECK(read.value() == own);
      CHECK_FALSE(read.value().empty());
    }
  }
}

TEST_CASE("Private part: damaged, cut short, or of another model, it is refused in words") {
  const auto whole = encode_private({stamp, Scalar::f32, bytes_of_floats(20)});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    auto bytes = whole;
    bytes[i] ^= std::byte{4};
    const auto read = decode_private(bytes, 20, Scalar::f32);
    REQUIRE_FALSE(read);
    CHECK(read.error().code == ErrorCode::bad_record);
    CHECK_FALSE(decode_private(std::span(whole).first(i), 20, Scalar::f32));
  }
  CHECK(contains(decode_private(whole, 21, Scalar::f32).error().message, "array size differs"));
  CHECK(contains(decode_private(whole, 10, Scalar::f64).error().message, "wrong element type"));
}

TEST_CASE("Private part: lies beside its state, is found by its stamp, and goes with it") {
  Bench b;
  CHECK_FALSE(b.read(stamp));
  CHECK(b.problems.empty());
  for (std::uint64_t step = 1; step <= 4; ++step) b.write({3, step});
  REQUIRE(b.read({3, 2}));
  CHECK(b.read({3, 2})->stamp == Stamp{3, 2});
  CHECK_FALSE(b.read({4, 2}));
  b.files.prune(2, {3, 4}, owner.job);
  CHECK_FALSE(std::filesystem::exists(b.path({3, 2}, ".private")));
  CHECK(std::filesystem::exists(b.path({3, 3}, ".private")));
  std::filesystem::remove(b.path({3, 3}, ".ckpt"));
  b.files.sweep();
  CHECK_FALSE(std::filesystem::exists(b.path({3, 3}, ".private")));
  CHECK(std::filesystem::exists(b.path({3, 4}, ".private")));
  CHECK(b.problems.empty());
}

TEST_CASE("Private part: one that cannot be used, or is another state's, is named and passed over") {
  Bench b;
  b.write({3, 4});
  std::filesystem::copy(b.path({3, 4}, ".private"), b.path({3, 5}, ".private"));
  CHECK_FALSE(b.read({3, 5}));
  REQUIRE(b.problems.size() == 1);
  CHECK(contains(b.problems[0], "belongs to a different state"));
  std::filesystem::resize_file(b.path({3, 4}, ".private"), 40);
  CHECK_FALSE(b.read({3, 4}));
  REQUIRE(b.problems.size() == 2);
  CHECK(contains(b.problems[1], "3.4.private"));
}
