#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "stream/dataset.h"
#include "tests/support/places.h"

using namespace rivulet;
using namespace rivulet::stream;

namespace {

/// A folder that is removed with the test.
struct Folder {
  Folder() : path(std::filesystem::temp_directory_path() / "rivulet_dataset_test") {
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
  }
  ~Folder() { std::filesystem::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name, std::ios::binary) << text;
    return (path / name).string();
  }
  std::filesystem::path path;
};

std::string big_endian(std::uint32_t n) {
  return {static_cast<char>(n >> 24U), static_cast<char>(n >> 16U), static_cast<char>(n >> 8U),
          static_cast<char>(n)};
}
std::string images(std::uint32_t n, std::uint32_t side) {
  std::string bytes = big_endian(0x803) + big_endian(n) + big_endian(side) + big_endian(side);
  for (std::uint32_t i = 0; i < n * side * side; ++i) bytes += static_cast<char>(i);
  return bytes;
}
std::string labels(std::uint32_t n) {
  std::string bytes = big_endian(0x801) + big_endian(n);
  for (std::uint32_t i = 0; i < n; ++i) bytes += static_cast<char>(i % 10);
  return bytes;
}

std::string value(const Dataset& data, std::size_t i) {
  return {reinterpret_cast<const char*>(data.value(i).data()), data.value(i).size()};
}

Error refused(const std::string& path, Split split = Split::train) {
  const auto data = open_dataset(path, split);
  REQUIRE_FALSE(data);
  return data.error();
}

}  // namespace

TEST_CASE("Dataset: MNIST's four files, packed") {
  const std::string folder = rivulet::testing::source_path("examples/mnist/data");
  for (const auto& [split, count] : {std::pair{Split::train, 60'000U}, std::pair{Split::test, 10'000U}}) {
    auto data = open_dataset(folder, split);
    REQUIRE(data);
    const Dataset& set = *data.value();
    CHECK(set.size() == count);
    CHECK(set.format() == "raw");
    CHECK(set.value(count - 1).size() == 785);
    std::map<int, int> per_class;
    for (std::size_t i = 0; i < set.size(); ++i) ++per_class[set.label(i).value()];
    CHECK(per_class.size() == 10);
    CHECK(per_class.begin()->first == 0);
    CHECK(static_cast<int>(set.value(0)[0]) == set.label(0).value());
    if (split == Split::test) CHECK(set.label(0) == 7);
  }
}

TEST_CASE("Dataset: IDX records are the label and then the pixels") {
  const Folder folder;
  folder.write("train-images-idx3-ubyte", images(3, 2));
  folder.write("train-labels-idx1-ubyte", labels(3));
  auto data = open_dataset(folder.path.string(), Split::train);
  REQUIRE(data);
  CHECK(value(*data.value(), 1) == std::string("\x01\x04\x05\x06\x07", 5));
  CHECK(refused(folder.path.string(), Split::test).message.find("no t10k-images-idx3-ubyte") !=
        std::string::npos);
}

TEST_CASE("Dataset: a broken IDX file is an error that names file and byte") {
  const Folder folder;
  const auto attempt = [&](const std::string& x, const std::string& y) {
    folder.write("train-images-idx3-ubyte", x);
    folder.write("train-labels-idx1-ubyte", y);
    return refused(folder.path.string());
  };
  const auto says = [](const Error& error, const std::string& words) {
    CAPTURE(error.message);
    CHECK(error.message.find(words) != std::string::npos);
  };
  says(attempt(images(3, 2).substr(0, 20), labels(3)),
       "train-images-idx3-ubyte, byte 20: the header specifies 12 bytes of values, the file contains 4");
  says(attempt(images(3, 2), labels(4)), "train-labels-idx1-ubyte, byte 4: 4 labels, but");
  says(attempt("PNG....", labels(3)), "train-images-idx3-ubyte, byte 0: not an IDX file");
  says(attempt("", labels(3)), "byte 0");
  says(attempt(std::string("\0\0\x0d\3", 4) + images(1, 1), labels(3)), "byte 2");
  says(attempt(std::string("\0\0\x08\3\0\0", 6), labels(3)), "byte 6: the file ends inside the header");
  says(attempt(std::string("\0\0\x08\3", 4) + std::string(12, '\xff'), labels(3)),
       "the product of the dimensions exceeds 2^40");
  says(attempt("\x1f\x8b\x08 not gzip", labels(3)), "cannot be decompressed");
}

TEST_CASE("Dataset: a truncated gzip file is an error, not a shorter data set") {
  const Folder folder;
  const std::filesystem::path mnist = rivulet::testing::source_path("examples/mnist/data");
  for (const auto* name : {"t10k-images-idx3-ubyte.gz", "t10k-labels-idx1-ubyte.gz"})
    std::filesystem::copy_file(mnist / name, folder.path / name);
  const auto cut = folder.path / "t10k-images-idx3-ubyte.gz";
  std::filesystem::permissions(cut, std::filesystem::perms::owner_all);
  std::filesystem::resize_file(cut, std::filesystem::file_size(cut) / 2);
  const auto error = refused(folder.path.string(), Split::test);
  CAPTURE(error.message);
  CHECK(error.code == ErrorCode::io);
  CHECK(error.message.find("t10k-images-idx3-ubyte.gz: ") != std::string::npos);
}

TEST_CASE("Dataset: CSV is a record per line, a header is not one") {
  const Folder folder;
  auto data =
      open_dataset(folder.write("a.csv", "time;\"temp; C\";label\r\n1;2;3\r\n\r\n4;\"5;5\";6"), Split::train);
  REQUIRE(data);
  CHECK(data.value()->format() == "csv");
  REQUIRE(data.value()->size() == 2);
  CHECK(value(*data.value(), 0) == "1;2;3");
  CHECK(value(*data.value(), 1) == "4;\"5;5\";6");
  CHECK_FALSE(data.value()->label(0).has_value());
  CHECK(open_dataset(folder.write("b.csv", "1,2\n3,4\n"), Split::test).value()->size() == 2);
  CHECK(refused(folder.write("c.csv", "1,2\n\n3,4,5\n")).message ==
        (folder.path / "c.csv").string() + ", line 3: 3 columns, the first line has 2");
  CHECK(refused(folder.write("d.csv", "1,2\n\"3,4\n")).message.find("line 2: a quote is not closed") !=
        std::string::npos);
}

TEST_CASE("Dataset: JSON lines and an array of objects") {
  const Folder folder;
  auto data = open_dataset(folder.write("a.jsonl", "{\"x\":1}\r\n\n {\"x\":\"}{\"}\n"), Split::train);
  REQUIRE(data);
  CHECK(data.value()->format() == "json");
  REQUIRE(data.value()->size() == 2);
  CHECK(value(*data.value(), 0) == "{\"x\":1}");
  data = open_dataset(folder.write("b.json", "[ {\"x\":[1,{\"y\":2}]},\n{\"x\":\"]}\\\"\"} ]"), Split::train);
  REQUIRE(data);
  REQUIRE(data.value()->size() == 2);
  CHECK(value(*data.value(), 0) == "{\"x\":[1,{\"y\":2}]}");
  CHECK(value(*data.value(), 1) == "{\"x\":\"]}\\\"\"}");
  CHECK(refused(folder.write("c.jsonl", "{\"x\":1}\n{\"x\":\n"))
            .message.find("c.jsonl, line 2: not a JSON object") != std::string::npos);
  CHECK(refused(folder.write("d.json", "[{\"x\":1}, 5]")).message.find("element 1") != std::string::npos);
  CHECK(refused(folder.write("e.json", "[{\"x\":1}")).message.find("not valid JSON") != std::string::npos);
}

TEST_CASE("Dataset: a folder may hold train and test files; what is not there is named") {
  const Folder folder;
  folder.write("train.csv", "1,2\n");
  folder.write("test.csv", "1,2\n3,4\n");
  CHECK(open_dataset(folder.path.string(), Split::train).value()->size() == 1);
  CHECK(open_dataset(folder.path.string(), Split::test).value()->size() == 2);
  CHECK(refused("/nowhere/at/all.csv").message == "/nowhere/at/all.csv: no such file or folder");
  CHECK(refused(folder.write("x.bin", "1"))
            .message.find("x.bin: must be a folder or a .csv, .json or .jsonl file") != std::string::npos);
}
