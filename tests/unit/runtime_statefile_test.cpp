#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "core/digest.h"
#include "core/rng.h"
#include "devices/columns.h"
#include "devices/device.h"
#include "runtime/state/agreed_state.h"
#include "runtime/state/state_file.h"
#include "tests/support/aborts.h"
#include "tests/support/example_state.h"
#include "tests/support/places.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
namespace fs = std::filesystem;

namespace {

/// A folder of this process, removed with the test.
struct Folder : TempDir {
  [[nodiscard]] std::string file(const std::string& name) const { return (path() / name).string(); }
};

StateOwner owner(const std::string& model) {
  return {model, "pumps", {"readings"}};
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}
void spill(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

template <class T>
T number_at(const std::string& bytes, std::size_t at) {
  T value{};
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}
void put_at(std::string& bytes, std::size_t at, std::uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}
std::uint64_t sum_of(const std::string& bytes, std::size_t first, std::size_t size) {
  return digest_of(std::as_bytes(std::span(bytes).subspan(first, size))).low;
}

/// The same bytes with corrected length and checksums, as from a careless or hostile writer instead of a bad
/// disk. Sections with an invalid length are left unchanged.
std::string sealed(std::string bytes) {
  if (bytes.size() < 64 + 32) return bytes;
  put_at(bytes, 16, bytes.size());
  put_at(bytes, 56, sum_of(bytes, 0, 56));
  const std::size_t end = bytes.size() - 32;
  for (std::size_t at = 64; at + 24 <= end;) {
    const auto size = number_at<std::uint64_t>(bytes, at + 8);
    if (size > end - at - 24) break;
    put_at(bytes, at + 16, sum_of(bytes, at + 24, size));
    at += 24 + size;
  }
  const Sha256 hash = sha256_of(std::as_bytes(std::span(bytes).first(end)));
  std::memcpy(bytes.data() + end, hash.data(), hash.size());
  return bytes;
}

Result<DecodedState> read_back(const std::string& path, const std::string& model,
                               const devices::ModelLayout& layout, devices::Device& device) {
  return read_state_file(path, {owner(model), layout, device});
}

}  // namespace

TEST_CASE("State file: what was written is read back, bit by bit, in both number types") {
  const Folder folder;
  const auto device = devices::make_host_device();
  for (const auto& layout : {layout_of(1000, 17), layout_of(33, 0, Scalar::f64)}) {
    const AgreedState state = example_state(layout, *device);
    const Digest digest = digest_of(state, *device).value();
    REQUIRE(write_state_file(folder.file("a.state"), owner("lenet5"), state, digest));
    const auto read = read_back(folder.file("a.state"), "lenet5", layout, *device);
    REQUIRE(read);
    CHECK(read.value().digest == digest);
    const AgreedState& back = read.value().state;
    CHECK(digest_of(back, *device).value() == digest);
    CHECK(back.stamp == Stamp{3, 349});
    CHECK(back.rows == 60'000);
    REQUIRE(back.partitions.size() == 3);
    const PartitionProgress& p = back.partitions.at({2, -1});
    CHECK(p.start == RowCursor{5, 1});
    CHECK(p.next == RowCursor{9'000'000'000, 4'000'000'000});
    CHECK(p.trained == 9'000'000'000);
    CHECK(p.dropped[0] == 1);
    CHECK(p.adds_up());
    CHECK(back.partitions.at({0, 0}).runs == state.partitions.at({0, 0}).runs);
  }
}

TEST_CASE("State file: a file cut off anywhere, or continued, is refused") {
  const Folder folder;
  const auto device = devices::make_host_device();
  const auto layout = layout_of(20, 3);
  REQUIRE(write_state_file(folder.file("a.state"), owner("m"), example_state(layout, *device), {1, 2}));
  const std::string whole = slurp(folder.file("a.state"));
  REQUIRE(whole.size() > 200);
  REQUIRE(sealed(whole) == whole);
  const auto refused = [&](const std::string& bytes) {
    spill(folder.file("b.state"), bytes);
    const auto read = read_back(folder.file("b.state"), "m", layout, *device);
    return !read && read.error().code == ErrorCode::bad_record &&
           contains(read.error().message, folder.file("b.state"));
  };
  for (std::size_t n = 0; n < whole.size(); ++n) {
    CAPTURE(n);
    CHECK(refused(whole.substr(0, n)));
    CHECK(refused(sealed(whole.substr(0, n))));  // even with correct checksums
  }
  CHECK(refused(whole + "x"));
  CHECK(refused(sealed(whole + "x")));
  CHECK(refused(sealed(whole + std::string(32, '\0'))));
}

TEST_CASE("State file: a flipped bit anywhere is refused") {
  const Folder folder;
  const auto device = devices::make_host_device();
  const auto layout = layout_of(20, 3);
  REQUIRE(write_state_file(folder.file("a.state"), owner("m"), example_state(layout, *device), {1, 2}));
  const std::string whole = slurp(folder.file("a.state"));
  for (std::size_t n = 0; n < whole.size(); ++n) {
    CAPTURE(n);
    std::string flipped = whole;
    flipped[n] = static_cast<char>(flipped[n] ^ (1 << (n % 8)));
    spill(folder.file("b.state"), flipped);
    CHECK(!read_back(folder.file("b.state"), "m", layout, *device));
  }
}

TEST_CASE("State file: numbers that lie never crash the reader, whatever the checksums say") {
  const Folder folder;
  const auto device = devices::make_host_device();
  const auto layout = layout_of(20, 3);
  const AgreedState state = example_state(layout, *device);
  REQUIRE(write_state_file(folder.file("a.state"), owner("m"), state, {1, 2}));
  const std::string whole = slurp(folder.file("a.state"));
  const auto read = [&](const std::string& bytes) {
    spill(folder.file("b.state"), bytes);
    return read_back(folder.file("b.state"), "m", layout, *device);
  };
  int refused = 0;
  for (std::size_t at = 0; at + 4 <= whole.size() - 32; ++at) {
    std::string lying = whole;
    std::memset(lying.data() + at, 0xff, 4);
    const auto answer = read(sealed(lying));
    if (answer) continue;  // a field with any valid value: stamp, digest, rows, weights
    CHECK((answer.error().code == ErrorCode::bad_record || answer.error().code == ErrorCode::invalid_config));
    ++refused;
  }
  CHECK(refused > 150);  // magic, version, lengths, tags, name, shape, cursors that end before they begin
  const std::size_t part =
      64 + (24 + 28 + 1) + (24 + 4 + 5 + 4 + 4 + 8) + (24 + 4) + 24;  // the first partition
  std::string twice = whole;
  const PartitionProgress& first = state.partitions.begin()->second;
  const auto reasons = std::ranges::count_if(first.dropped, [](auto rows) { return rows > 0; });
  const std::size_t length = 64 + 12 * static_cast<std::size_t>(reasons) + 36 * first.runs.size();
  std::memcpy(twice.data() + part + length, twice.data() + part, 8);
  const auto answer = read(sealed(twice));
  REQUIRE(!answer);
  CHECK(contains(answer.error().message, "out of order or repeated"));
}

TEST_CASE(
    "State image: of as many partitions as a job may have, with all the runs they may have, it is read") {
  const auto device = devices::make_host_device();
  const auto layout = layout_of(2, 0);
  AgreedState state{devices::ModelState::create(layout, *device).value(), {1, 1}, 0, {}};
  for (std::int32_t p = 0; p < static_cast<std::int32_t>(partitions_max); ++p) {
    PartitionProgress& progress = state.partitions[{0, p}];
    progress.next.offset = progress.holes = passed_runs_max;
    for (std::int64_t i = 0; i < static_cast<std::int64_t>(passed_runs_max); ++i)
      progress.runs.push_back({{0, p}, {i, 0}, {i + 1, 0}, 1, fate_hole});
  }
  const auto image = encode_state(owner("m"), state, digest_of(state, *device).value());
  CHECK(image.size() <= state_image_max(layout));
  const auto back = decode_state(image, {owner("m"), layout, *device});
  REQUIRE_MESSAGE(back, back.error().message);
  CHECK(digest_of(back.value().state, *device).value() == back.value().digest);
}

TEST_CASE("State image: what controllers remember is part of it, and of its digest if there is any") {
  const auto device = devices::make_host_device();
  const auto layout = layout_of(20, 3);
  AgreedState state = example_state(layout, *device);
  const Digest without = digest_of(state, *device).value();
  state.controllers = {{"first", {1.5, -0.0}}, {"second", {}}, {"third", {1e300}}};
  const Digest with = digest_of(state, *device).value();
  CHECK(with != without);
  const auto image = encode_state(owner("m"), state, with);
  CHECK(image.size() <= state_image_max(layout));
  const auto back = decode_state(image, {owner("m"), layout, *device});
  REQUIRE_MESSAGE(back, back.error().message);
  CHECK(back.value().state.controllers == state.controllers);
  CHECK(check_digest(back.value(), *device));
  state.controllers[0].values[1] = 0.0;  // another bit
  CHECK(digest_of(state, *device).value() != with);
  state.controllers.clear();
  CHECK(digest_of(state, *device).value() == without);
}

TEST_CASE("State image: a section that is not known is skipped, and counted") {
  const auto device = devices::make_host_device();
  const auto layout = layout_of(20, 3);
  const auto image = encode_state(owner("m"), example_state(layout, *device), {1, 2});
  std::string whole(reinterpret_cast<const char*>(image.data()), image.size());
  std::string more("NEWS\0\0\0\0", 8);
  more += std::string("\5\0\0\0\0\0\0\0", 8) + std::string(8, '\0') + "hello";
  whole.insert(whole.size() - 32, more);
  put_at(whole, 12, number_at<std::uint32_t>(whole, 12) + 1);
  const std::string sealed_again = sealed(whole);
  const auto read = decode_state(std::as_bytes(std::span(sealed_again)), {owner("m"), layout, *device});
  REQUIRE_MESSAGE(read, read.error().message);
  CHECK(read.value().skipped == 1);
  CHECK(encode_state(owner("m"), read.value().state, read.value().digest) == image);
}

TEST_CASE("State image: what another optimizer remembers is refused by name") {
  const auto device = devices::make_host_device();
  auto adam = layout_of(20, 3);
  adam.optimizer_arrays = {{.name = "exp_avg"}, {.name = "exp_avg_sq"}};
  const AgreedState state{devices::ModelState::create(adam, *device).value(), {1, 1}, 0, {}};
  const auto image = encode_state(owner("m"), state, {1, 2});
  CHECK(image.size() <= state_image_max(adam));
  REQUIRE(decode_state(image, {owner("m"), adam, *device}));
  const auto read = decode_state(image, {owner("m"), layout_of(20, 3), *device});
  REQUIRE(!read);
  CHECK(read.error().message == "its optimizer arrays are [exp_avg, exp_avg_sq], here [momentum]");
}

TEST_CASE("State image: the head alone tells stamp, digest and length") {
  const auto device = devices::make_host_device();
  const auto bytes = encode_state(owner("m"), example_state(layout_of(20, 3), *device), {1, 2});
  const auto head = decode_state_head(std::span(bytes).first(64), bytes.size());
  REQUIRE(head);
  CHECK(head.value().stamp == Stamp{3, 349});
  CHECK(head.value().digest == Digest{1, 2});
  CHECK(head.value().bytes == bytes.size());
  CHECK(bytes.size() <= state_image_max(layout_of(20, 3)));
  CHECK_FALSE(decode_state_head(std::span(bytes).first(63), bytes.size()));
}

TEST_CASE("State file: another model, shape, number type or version is named") {
  const Folder folder;
  const auto device = devices::make_host_device();
  const auto layout = layout_of(20, 3);
  REQUIRE(write_state_file(folder.file("a.state"), owner("lenet5"), example_state(layout, *device), {1, 2}));
  const auto problem = [&](const std::string& model, const devices::ModelLayout& wanted) {
    const auto read = read_back(folder.file("a.state"), model, wanted, *device);
    REQUIRE(!read);
    return read.error().message;
  };
  CHECK(contains(problem("cnn", layout), "its model is 'lenet5', not 'cnn'"));
  CHECK(contains(problem("lenet5", layout_of(21, 3)),
                 "20 parameters and 3 buffer elements of float32, the model has 21 and 3"));
  CHECK(contains(problem("lenet5", layout_of(20, 3, Scalar::f64)), "20 and 3 of float64"));
  std::string newer = slurp(folder.file("a.state"));
  newer[8] = 9;
  spill(folder.file("a.state"), newer);
  CHECK(contains(problem("lenet5", layout), "its version is 9, this program reads version 8"));
  for (const auto& [bytes, words] : std::vector<std::pair<std::string, std::string>>{
           {std::string(500, '\x01'), "it is not a state of Rivulet"},
           {std::string(500, 'x'),
            "it is a text file, not a state of Rivulet (final.state, checkpoints/*.ckpt)"},
           {std::string("\x40\0\0\0\0\0\0\0{\"__metadata__\"", 22),
            "it is a safetensors file, as written by rivulet checkpoint"},
           {"PK\x03\x04 and so on", "it is a file saved by torch (rivulet model inspect), not a state"}}) {
    spill(folder.file("a.state"), bytes);
    CHECK_MESSAGE(contains(problem("lenet5", layout), words), problem("lenet5", layout));
  }
}

TEST_CASE("State file: of a key that makes other buffers the name and both values are told") {
  const Folder folder;
  const auto device = devices::make_host_device();
  const auto with = [](std::size_t features, std::size_t targets, std::size_t classes) {
    auto layout = layout_of(20, 0);
    layout.parameter_slots = {{"weight", {2, 9}, 0, 18}, {"bias", {2}, 18, 2}};
    if (features + targets > 0)
      layout = devices::with_columns(layout, {.features = features, .targets = targets});
    if (classes > 0) layout.buffers += 1 + classes;
    layout.counted_classes = classes;
    return layout;
  };
  const auto problem = [&](const devices::ModelLayout& was, const devices::ModelLayout& is) {
    REQUIRE(write_state_file(folder.file("a.state"), owner("mlp"), example_state(was, *device), {1, 2}));
    const auto read = read_back(folder.file("a.state"), "mlp", is, *device);
    return read ? "" : read.error().message;
  };
  for (const std::size_t features : {0U, 9U}) {
    CHECK(contains(problem(with(features, 2, 0), with(features, 0, 0)),
                   "it was written with 'normalize.targets' = true, here it is false"));
    CHECK(contains(problem(with(features, 0, 0), with(features, 2, 0)),
                   "it was written with 'normalize.targets' = false, here it is true"));
    CHECK(contains(problem(with(features, 0, 2), with(features, 0, 0)),
                   "it was written with 'train.class_weights' = 'auto', here it is none or a list"));
    CHECK(contains(problem(with(features, 0, 0), with(features, 0, 2)),
                   "it was written with 'train.class_weights' = none or a list, here it is 'auto'"));
  }
}

TEST_CASE("State file: an average with a number that is not finite is refused") {
  const Folder folder;
  const auto device = devices::make_host_device();
  auto layout = layout_of(20, 3);
  layout.average_rows = 100;
  AgreedState state = example_state(layout, *device);
  const auto problem = [&] {
    const Digest digest = digest_of(state, *device).value();
    REQUIRE(write_state_file(folder.file("a.state"), owner("lenet5"), state, digest));
    const auto read = read_back(folder.file("a.state"), "lenet5", layout, *device);
    return read ? "" : read.error().message;
  };
  CHECK(problem().empty());
  state.model.average().as<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK(contains(problem(), "its average of parameters contains a value that is not finite"));
}

TEST_CASE(
    "State file: another job, and offsets of other topics, are named; a caller that does not care gets "
    "them") {
  const Folder folder;
  const auto device = devices::make_host_device();
  const auto layout = layout_of(20, 3);
  const AgreedState state = example_state(layout, *device);
  REQUIRE(write_state_file(folder.file("a.state"), {"m", "pumps", {"b", "c"}}, state, {1, 2}));
  const auto problem = [&](const StateOwner& wanted) {
    const auto read = read_state_file(folder.file("a.state"), {wanted, layout, *device});
    return read ? "" : read.error().message;
  };
  CHECK(contains(problem({"m", "fans", {"b", "c"}}), "its job is 'pumps', not 'fans'"));
  CHECK(contains(problem({"m", "pumps", {"b"}}), "its topics are b, c, not b"));
  CHECK(contains(problem({"m", "pumps", {"a", "b", "c"}}), "its topics are b, c, not a, b, c"));  // b was 0
  CHECK(problem({"m", "pumps", {"b", "c"}}).empty());
  CHECK(problem({"m", "pumps", {"b", "c", "d"}}).empty());
  CHECK(problem({"m", "", {}}).empty());
}

TEST_CASE("State file: files that cannot be read or written are named, and nothing is left behind") {
  const Folder folder;
  const auto device = devices::make_host_device();
  const auto layout = layout_of(20, 3);
  const AgreedState state = example_state(layout, *device);
  const auto missing = read_back(folder.file("none"), "m", layout, *device);
  REQUIRE(!missing);
  CHECK(missing.error().code == ErrorCode::io);
  CHECK(contains(missing.error().message, folder.file("none")));
  CHECK(read_back(folder.path().string(), "m", layout, *device).error().code == ErrorCode::io);
  REQUIRE(mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK(read_back(folder.file("pipe"), "m", layout, *device).error().code == ErrorCode::io);
  fs::remove(folder.file("pipe"));
  spill(folder.file("huge"), "");
  fs::resize_file(folder.file("huge"), 1ULL << 40);  // sparse
  CHECK(read_back(folder.file("huge"), "m", layout, *device).error().code == ErrorCode::io);
  fs::remove(folder.file("huge"));

  const Status nowhere = write_state_file(folder.file("no/such/a.state"), owner("m"), state, {});
  REQUIRE(!nowhere);
  CHECK(nowhere.error().code == ErrorCode::unavailable);
  CHECK(contains(nowhere.error().message, "no/such/a.state"));
  fs::create_directories(folder.file("taken/full"));
  CHECK(!write_state_file(folder.file("taken"), owner("m"), state,
                          {}));  // a folder has this name: the rename fails
  fs::remove_all(folder.file("taken"));
  CHECK(fs::is_empty(folder.path()));
}

TEST_CASE("State file: the old file stays whole until the new one is") {
  const Folder folder;
  const auto device = devices::make_host_device();
  const auto layout = layout_of(20, 3);
  REQUIRE(write_state_file(folder.file("a.state"), owner("m"), example_state(layout, *device, 1), {1, 1}));
  const int old = open(folder.file("a.state").c_str(), O_RDONLY);
  const std::string before = slurp(folder.file("a.state"));
  REQUIRE(write_state_file(folder.file("a.state"), owner("m"), example_state(layout, *device, 2), {2, 2}));
  std::string held(before.size(), '\0');
  CHECK(read(old, held.data(), held.size()) == static_cast<ssize_t>(held.size()));
  close(old);
  CHECK(held == before);  // it was replaced, not overwritten
  CHECK(slurp(folder.file("a.state")) != before);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}
