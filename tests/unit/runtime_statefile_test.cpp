#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "core/digest.h"
#include "core/rng.h"
#include "devices/device.h"
#include "runtime/agreed_state.h"
#include "runtime/state_file.h"
#include "tests/support/aborts.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;
namespace fs = std::filesystem;

namespace {

/// A folder of this process, gone with the test.
struct Folder : TempDir {
  [[nodiscard]] std::string file(const std::string& name) const { return (path() / name).string(); }
};

devices::ModelLayout layout_of(std::size_t parameters, std::size_t buffers, Scalar scalar = Scalar::f32) {
  return {
      scalar, parameters, buffers, {{"weight", {static_cast<std::int64_t>(parameters)}, 0, parameters}}, {}};
}

StateOwner owner(const std::string& model) {
  return {model, "pumps", {"readings"}};
}

template <class T>
void fill(const GradientView& view, Rng& rng) {
  for (T& x : view.as<T>()) x = static_cast<T>(rng.normal());
}

AgreedState example(const devices::ModelLayout& layout, devices::Device& device, std::uint64_t seed = 1) {
  auto model = devices::ModelState::create(layout, device);
  REQUIRE(model);
  AgreedState state{std::move(model).value(), {3, 349}, 60'000, {}};
  Rng rng(seed);
  for (const GradientView& view : {state.model.parameters(), state.model.momentum(), state.model.buffers()}) {
    layout.scalar == Scalar::f32 ? fill<float>(view, rng) : fill<double>(view, rng);
  }
  state.partitions[{0, 0}] = {{7, 0}, {1234, 3}, 1200, 10, 3, {30, 0, 4}, {}};
  state.partitions[{0, 0}].runs = {{{0, 0}, {20, 0}, {50, 0}, 30, 0},
                                   {{0, 0}, {60, 0}, {64, 0}, 4, 2},
                                   {{0, 0}, {90, 1}, {94, 0}, 3, fate_hole}};
  state.partitions[{0, 7}] = {};
  state.partitions[{2, -1}] = {{5, 1}, {9'000'000'000, 4'000'000'000}, 9'000'000'000, 6, 0, {1}, {}};
  state.partitions[{2, -1}].runs = {{{2, -1}, {5, 1}, {6, 0}, 1, 0}};
  return state;
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

/// The same bytes with length and checksums made right again: what a careless or hostile writer, not a bad
/// disk, would leave. Sections whose length does not fit stay as they are.
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

TEST_CASE("Hasher: values and arrays in any mix have the digest of their bytes in a row") {
  Rng rng(3);
  std::vector<std::byte> row;
  Hasher hasher;
  for (int i = 0; i < 2000; ++i) {
    const std::uint64_t value = rng.next();
    const auto bytes = std::as_bytes(std::span(&value, 1)).first(1 + rng.below(8));
    const bool as_array = rng.below(40) == 0;
    if (as_array)
      hasher.add(bytes);
    else
      hasher.add_value(value);
    const auto added = as_array ? bytes : std::as_bytes(std::span(&value, 1));
    row.insert(row.end(), added.begin(), added.end());
    if (i % 500 == 0) CHECK(hasher.finish() == rivulet::digest_of(row));  // and it may go on
  }
  CHECK(hasher.finish() == rivulet::digest_of(row));
}

TEST_CASE("State: its digest is that of its values in a row, however many there are") {
  const auto device = devices::make_host_device();
  AgreedState state{devices::ModelState::create({.parameters = 1}, *device).value(), {3, 4}, 5, {}};
  for (const std::size_t runs : {0UL, 1UL, 100UL, 256UL}) {
    CAPTURE(runs);
    PartitionProgress& books = state.partitions[{0, static_cast<std::int32_t>(runs)}];
    books = {{1, 2}, {900, 3}, 10, 11, 12, {13, 14}, {}};
    for (std::size_t i = 0; i < runs; ++i)
      books.runs.push_back({{0, 0}, {static_cast<std::int64_t>(i), 1}, {900, 2}, i, 1});
    Hasher hasher;
    REQUIRE(state.model.hash_into(hasher, *device));
    const auto add_cursor = [&](const RowCursor& at) {
      hasher.add_value(at.offset);
      hasher.add_value(at.row);
    };
    hasher.add_value(state.stamp.step);
    hasher.add_value(state.rows);
    hasher.add_value(std::uint64_t{state.partitions.size()});
    for (const auto& [id, p] : state.partitions) {
      hasher.add_value(id.topic);
      hasher.add_value(id.partition);
      add_cursor(p.start);
      add_cursor(p.next);
      for (const std::uint64_t number : {p.trained, p.shared, p.holes}) hasher.add_value(number);
      for (const std::uint64_t rows : p.dropped) hasher.add_value(rows);
      for (const PassedRun& run : p.runs) {
        add_cursor(run.from);
        add_cursor(run.to);
        hasher.add_value(run.rows);
        hasher.add_value(run.fate);
      }
    }
    CHECK(digest_of(state, *device).value() == hasher.finish());
  }
}

TEST_CASE("State file: what was written is read back, bit by bit, in both number types") {
  const Folder folder;
  const auto device = devices::make_host_device();
  for (const auto& layout : {layout_of(1000, 17), layout_of(33, 0, Scalar::f64)}) {
    const AgreedState state = example(layout, *device);
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
  REQUIRE(write_state_file(folder.file("a.state"), owner("m"), example(layout, *device), {1, 2}));
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
    CHECK(refused(sealed(whole.substr(0, n))));  // even with right checksums
  }
  CHECK(refused(whole + "x"));
  CHECK(refused(sealed(whole + "x")));
  CHECK(refused(sealed(whole + std::string(32, '\0'))));
}

TEST_CASE("State file: a flipped bit anywhere is refused") {
  const Folder folder;
  const auto device = devices::make_host_device();
  const auto layout = layout_of(20, 3);
  REQUIRE(write_state_file(folder.file("a.state"), owner("m"), example(layout, *device), {1, 2}));
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
  const AgreedState state = example(layout, *device);
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
    if (answer) continue;  // a number that may be anything: stamp, digest, rows, weights
    CHECK(answer.error().code == ErrorCode::bad_record);
    ++refused;
  }
  CHECK(refused > 150);  // magic, version, lengths, tags, name, shape, cursors that end before they begin
  const std::size_t part = 64 + (24 + 28 + 1) + (24 + 4 + 5 + 4 + 4 + 8) + 24;  // the first partition
  std::string twice = whole;
  const std::size_t runs = std::size_t{3} * 36;
  std::memcpy(twice.data() + part + 132 + runs, twice.data() + part, 8);
  const auto answer = read(sealed(twice));
  REQUIRE(!answer);
  CHECK(contains(answer.error().message, "or one is in it twice"));
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

TEST_CASE("State image: the head alone tells stamp, digest and length") {
  const auto device = devices::make_host_device();
  const auto bytes = encode_state(owner("m"), example(layout_of(20, 3), *device), {1, 2});
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
  REQUIRE(write_state_file(folder.file("a.state"), owner("lenet5"), example(layout, *device), {1, 2}));
  const auto complaint = [&](const std::string& model, const devices::ModelLayout& wanted) {
    const auto read = read_back(folder.file("a.state"), model, wanted, *device);
    REQUIRE(!read);
    CHECK(read.error().code == ErrorCode::bad_record);
    return read.error().message;
  };
  CHECK(contains(complaint("cnn", layout), "it is of model 'lenet5', not 'cnn'"));
  CHECK(contains(complaint("lenet5", layout_of(21, 3)),
                 "20 parameters and 3 buffers of float32, the model has 21 and 3"));
  CHECK(contains(complaint("lenet5", layout_of(20, 3, Scalar::f64)), "20 and 3 of float64"));
  std::string newer = slurp(folder.file("a.state"));
  newer[8] = 9;
  spill(folder.file("a.state"), newer);
  CHECK(contains(complaint("lenet5", layout), "its version is 9, this program reads version 4"));
  spill(folder.file("a.state"), std::string(500, 'x'));
  CHECK(contains(complaint("lenet5", layout), "it is no state of rivulet"));
}

TEST_CASE(
    "State file: another job, and offsets of other topics, are named; whoever does not care gets them") {
  const Folder folder;
  const auto device = devices::make_host_device();
  const auto layout = layout_of(20, 3);
  const AgreedState state = example(layout, *device);
  REQUIRE(write_state_file(folder.file("a.state"), {"m", "pumps", {"b", "c"}}, state, {1, 2}));
  const auto complaint = [&](const StateOwner& wanted) {
    const auto read = read_state_file(folder.file("a.state"), {wanted, layout, *device});
    return read ? "" : read.error().message;
  };
  CHECK(contains(complaint({"m", "fans", {"b", "c"}}), "it is of job 'pumps', this is job 'fans'"));
  CHECK(contains(complaint({"m", "pumps", {"b"}}), "its topics are b, c, not b"));
  CHECK(contains(complaint({"m", "pumps", {"a", "b", "c"}}), "its topics are b, c, not a, b, c"));  // b was 0
  CHECK(complaint({"m", "pumps", {"b", "c"}}).empty());
  CHECK(complaint({"m", "pumps", {"b", "c", "d"}}).empty());
  CHECK(complaint({"m", "", {}}).empty());
}

TEST_CASE("State file: files that cannot be read or written are named, and nothing is left behind") {
  const Folder folder;
  const auto device = devices::make_host_device();
  const auto layout = layout_of(20, 3);
  const AgreedState state = example(layout, *device);
  const auto missing = read_back(folder.file("none"), "m", layout, *device);
  REQUIRE(!missing);
  CHECK(missing.error().code == ErrorCode::io);
  CHECK(contains(missing.error().message, folder.file("none")));
  CHECK(read_back(folder.path().string(), "m", layout, *device).error().code == ErrorCode::io);
  REQUIRE(mkfifo(folder.file("pipe").c_str(), 0600) == 0);
  CHECK(read_back(folder.file("pipe"), "m", layout, *device).error().code == ErrorCode::io);
  fs::remove(folder.file("pipe"));
  spill(folder.file("huge"), "");
  fs::resize_file(folder.file("huge"), 1ULL << 40);  // holes only
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
  REQUIRE(write_state_file(folder.file("a.state"), owner("m"), example(layout, *device, 1), {1, 1}));
  const int old = open(folder.file("a.state").c_str(), O_RDONLY);
  const std::string before = slurp(folder.file("a.state"));
  REQUIRE(write_state_file(folder.file("a.state"), owner("m"), example(layout, *device, 2), {2, 2}));
  std::string held(before.size(), '\0');
  CHECK(read(old, held.data(), held.size()) == static_cast<ssize_t>(held.size()));
  close(old);
  CHECK(held == before);  // it was replaced, not overwritten
  CHECK(slurp(folder.file("a.state")) != before);
  CHECK(std::distance(fs::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("Agreed state: intervals move a partition on and count what was trained and dropped") {
  const auto device = devices::make_host_device();
  AgreedState state{devices::ModelState::create(layout_of(4, 0), *device).value(), {}, 0, {}};
  const std::vector<PassedRun> runs{{{0, 3}, {11, 0}, {12, 0}, 2, 4}, {{1, 3}, {0, 0}, {9, 0}, 9, 1}};
  fold_interval(state, {{0, 3}, {10, 0}, {12, 1}, 5, 2, 5, 0}, runs);
  fold_interval(state, {{0, 3}, {12, 1}, {12, 1}, 0, 0, 0, 0}, {});
  fold_interval(state, {{0, 3}, {12, 1}, {20, 0}, 7, 0, 0, 1}, {});
  fold_interval(state, {{1, 3}, {0, 0}, {1, 0}, 1, 0, 0, 0}, {});
  REQUIRE(state.partitions.size() == 2);
  CHECK(state.partitions.at({0, 3}).next == RowCursor{20, 0});
  CHECK(state.partitions.at({0, 3}).start == RowCursor{10, 0});
  CHECK(state.partitions.at({0, 3}).trained == 12);
  CHECK(state.partitions.at({0, 3}).dropped[4] == 2);
  CHECK(state.partitions.at({0, 3}).all_dropped() == 2);
  CHECK(state.partitions.at({0, 3}).runs.size() == 1);
  CHECK(aborts([&] { fold_interval(state, {{0, 3}, {19, 0}, {19, 9}, 1, 0}, {}); }));
  CHECK(aborts([&] { fold_interval(state, {{0, 3}, {30, 0}, {25, 0}, 1, 0}, {}); }));
  CHECK(aborts([&] { fold_interval(state, {{0, 3}, {20, 0}, {25, 0}, 4, 0}, {}); }));  // a row is missing
}

TEST_CASE("Agreed state: the digest covers every number of it") {
  const auto device = devices::make_host_device();
  const auto layout = layout_of(8, 2);
  const Digest base = digest_of(example(layout, *device), *device).value();
  CHECK(digest_of(example(layout, *device), *device).value() == base);
  const auto changed = [&](auto change) {
    AgreedState state = example(layout, *device);
    change(state);
    return digest_of(state, *device).value() != base;
  };
  CHECK(changed([](AgreedState& s) { s.model.parameters().as<float>()[7] += 1e-6F; }));
  CHECK(changed([](AgreedState& s) { s.model.momentum().as<float>()[0] += 1; }));
  CHECK(changed([](AgreedState& s) { s.model.buffers().as<float>()[1] += 1; }));
  CHECK(changed([](AgreedState& s) { ++s.stamp.step; }));
  CHECK(changed([](AgreedState& s) { ++s.rows; }));
  CHECK_FALSE(changed([](AgreedState& s) { ++s.stamp.lineage; }));  // adopted by a later view: the same state
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].start.offset; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].next.offset; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].next.row; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].trained; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].dropped[3]; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].shared; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].holes; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].runs[1].rows; }));
  CHECK(changed([](AgreedState& s) { ++s.partitions[{0, 0}].runs[1].fate; }));
  CHECK(changed([](AgreedState& s) { s.partitions[{0, 8}] = {}; }));
  CHECK(changed([](AgreedState& s) { s.partitions.erase({2, -1}); }));
}
