// Unpacked size and entries of a zip file, according to its directory.
#include "devices/torch/zip_size.h"

#include <doctest/doctest.h>

#include <string>

#include "core/rng.h"

using namespace rivulet;
using namespace rivulet::devices;

namespace {

std::string little(std::uint64_t number, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xFFU);
  return out;
}

/// Two stored entries, m/data.pkl of 5 bytes and m/constants.pkl of 7; the directory has other sizes.
std::string zip_of(std::uint64_t first, std::uint64_t second, std::uint64_t entries = 2) {
  const std::pair<std::string, std::string> files[] = {{"m/data.pkl", "12345"},
                                                       {"m/constants.pkl", "1234567"}};
  const std::uint64_t said[] = {first, second};
  std::string body, directory;
  for (std::size_t i = 0; i < 2; ++i) {
    const auto& [name, data] = files[i];
    const bool large = said[i] >= 0xFFFFFFFF;
    const std::string extra = large ? little(1, 2) + little(8, 2) + little(said[i], 8) : "";
    const std::string middle = little(0, 2) + little(0, 2) + little(0, 2) + little(0, 4);  // method ... crc
    const std::string sizes = little(data.size(), 4) + little(large ? 0xFFFFFFFF : said[i], 4);
    directory += "PK\1\2" + little(20, 2) + little(20, 2) + little(0, 2) + middle + sizes +
                 little(name.size(), 2) + little(extra.size(), 2) + little(0, 2) + little(0, 2) +
                 little(0, 2) + little(0, 4) + little(body.size(), 4) + name + extra;
    body += "PK\3\4" + little(20, 2) + little(0, 2) + middle + little(data.size(), 4) +
            little(data.size(), 4) + little(name.size(), 2) + little(0, 2) + name + data;
  }
  return body + directory + "PK\5\6" + little(0, 4) + little(entries, 2) + little(entries, 2) +
         little(directory.size(), 4) + little(body.size(), 4) + little(0, 2);
}

}  // namespace

TEST_CASE("Zip: the sizes of all entries are added, also those of 64 bits") {
  CHECK(unpacked_bytes(zip_of(5, 7)) == 12);
  CHECK(unpacked_bytes(zip_of(5, 900'000'000)) == 900'000'005);
  CHECK(unpacked_bytes(zip_of(5, 1ULL << 40U)) == (1ULL << 40U) + 5);
}

TEST_CASE("Zip: an entry is found by the end of its name, in a whole directory only") {
  CHECK(has_entry(zip_of(5, 7), "data.pkl"));
  CHECK(has_entry(zip_of(5, 7), "constants.pkl"));
  CHECK_FALSE(has_entry(zip_of(5, 7), "pkls"));
  CHECK_FALSE(has_entry(zip_of(5, 7, 3), "data.pkl"));
  CHECK_FALSE(has_entry("not a zip file, but longer than the record at the end of one", "one"));
}

TEST_CASE("Zip: what is not a zip file, or not whole, has no size, and nothing is read beyond its end") {
  CHECK_FALSE(unpacked_bytes(""));
  CHECK_FALSE(unpacked_bytes("not a zip file, but longer than the record at the end of one"));
  CHECK_FALSE(unpacked_bytes(zip_of(5, 7, 3)));  // one is missing
  const std::string whole = zip_of(5, 1ULL << 40U);
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_FALSE(unpacked_bytes(std::string(whole, 0, size)));
  Rng rng(11);
  for (int i = 0; i < 20'000; ++i) {
    std::string broken = whole;
    for (int n = 0; n < 3; ++n) broken[rng.below(broken.size())] = static_cast<char>(rng.below(256));
    static_cast<void>(unpacked_bytes(broken));  // under a sanitizer
  }
}
