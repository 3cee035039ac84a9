#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/rng.h"
#include "tests/support/decoding.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

std::string refusal(const DecodeConfig& config) {
  for (const auto* entry : stream::builtin_decoders()) {
    if (entry->name != config.format) continue;
    const auto made = entry->make(with_decode_defaults(config));
    if (made) return "accepted";
    CHECK(made.error().code == ErrorCode::invalid_config);
    return made.error().message;
  }
  return "no such format";
}

}  // namespace

TEST_CASE("Decoder: a wrong configuration is refused with its key") {
  auto config = raw_config("u9", "u8", 1);
  CHECK(refusal(config).find("decode.raw.label is \"u9\"; it can be none, u8") == 0);
  config = raw_config("u8", "u12", 1);
  CHECK(refusal(config).find("decode.raw.features") == 0);
  config = raw_config("u8", "u8", 0);
  CHECK(refusal(config).find("decode.raw.shape") == 0);
  config = raw_config("none", "u8", 1);
  CHECK(refusal(config).find("decode.raw.label is \"none\"") == 0);
  config = raw_config("u8", "u8", 1);
  config.shape = {1 << 20, 1 << 20};
  CHECK(refusal(config).find("decode.raw.shape") == 0);
  config.shape = {4};
  config.scale = {not_a_number};
  CHECK(refusal(config).find("decode.raw.scale") == 0);
  config.scale = {1, 2, 3};
  CHECK(refusal(config).find("decode.raw.scale has 3 values: it must be one value for all features, or a "
                             "list of 4") == 0);
  DecodeConfig csv{.format = "csv", .features = {"temp"}};
  CHECK(refusal(csv).find("decode.csv.features: column \"temp\" is not a number") == 0);
  csv.settings.set("decode.csv.columns", Settings::Texts{"time"});
  CHECK(refusal(csv).find("decode.csv.features: column \"temp\" is not in") == 0);
  csv.features = {"3"};
  CHECK(refusal(csv).find("decode.csv.features: column \"3\" is beyond") == 0);
  csv.features = {};
  CHECK(refusal(csv).find("decode.csv.features is empty") == 0);
  DecodeConfig json{.format = "json", .features = {"a[1:1]"}};
  CHECK(refusal(json) == "decode.json.features: \"a[1:1]\", position 2: expected [index] or [begin:end]");
  for (const auto* path : {"", ".", "a.", "a..b", "a[", "a[x]", "a]b", "a[0]b", "a[-1]", "[]"}) {
    CAPTURE(path);
    json.features = {path};
    CHECK(refusal(json).find("decode.json.features: ") == 0);
  }
  json.features = {"a[:]"};
  CHECK(refusal(json).find("decode.json.shape is missing") == 0);
  json.features = {"a"};
  json.target = "b[0:2]";
  CHECK(refusal(json).find("decode.json.target") == 0);
}

TEST_CASE("Decoder: random and mutated bytes never crash and never let a bad row out") {
  auto regression = json_config();
  regression.classes = 0;
  const std::vector<DecodeConfig> configs{raw_config("f32", "f32", 2), raw_config("u8", "i16", 3),
                                          csv_config(), json_config(), regression};
  const std::string seeds[] = {json_row("1", "2"), json_row("1", "0") + "\n" + json_row("2", "1"),
                               "[" + json_row("1", "2") + "," + json_row("3", "1") + "]",
                               "1,2,0\n3,\"4\",1\r\n", le<float>({1, 2, 3, 4, 5, 6})};
  const std::string alphabet = "{}[]\",:.0123456789eE+-\n\r\\ ntfu";
  std::vector<std::unique_ptr<Decoder>> decoders;
  for (const auto& config : configs) decoders.push_back(make_decoder(config));
  Rng rng(20240607);
  std::size_t rows = 0;
  std::size_t wrong = 0;
  for (int input = 0; input < 100'000; ++input) {
    std::string bytes;
    if (rng.below(3) == 0) {
      bytes.resize(rng.below(40));
      for (auto& c : bytes) c = static_cast<char>(rng.next());
    } else {
      bytes = seeds[rng.below(std::size(seeds))];
      for (auto n = rng.below(4); n > 0; --n) {
        const auto at = rng.below(bytes.size());
        if (rng.below(2) == 0)
          bytes[at] = alphabet[rng.below(alphabet.size())];
        else
          bytes.erase(at, rng.below(3));
        if (bytes.empty()) break;
      }
    }
    // An exact heap copy, so that a sanitizer detects an overread of one byte.
    const std::vector<char> exact(bytes.begin(), bytes.end());
    auto& decoder = *decoders[static_cast<std::size_t>(input) % decoders.size()];
    const auto& config = configs[static_cast<std::size_t>(input) % decoders.size()];
    const auto read = read_all(decoder, {.value = std::as_bytes(std::span(exact))});
    wrong += read.rows.empty() && read.drops.empty() ? 1 : 0;  // no row vanishes silently
    rows += read.rows.size();
    for (const auto& row : read.rows) {
      for (const auto x : row) wrong += std::isfinite(x) ? 0 : 1;
      if (config.classes > 0)
        wrong += row.back() < 0 || row.back() >= static_cast<float>(config.classes) ||
                         row.back() != std::floor(row.back())
                     ? 1
                     : 0;
    }
  }
  CHECK(wrong == 0);
  CHECK(rows > 10'000);  // mutations leave enough intact to reach the deep paths
}

TEST_CASE("Decoder: a JSON integer of any length is a number, and spoils no row beside it") {
  const DecodeConfig config{.format = "json", .features = {"x"}, .target = "y"};
  const auto numbers = read_text(
      config,
      R"([{"x":18446744073709551616,"y":1},{"x":-123456789012345678901234,"y":2},{"x":18446744073709551615,"y":3},)"
      R"({"x":4,"y":4,"id":"98765432109876543210, \" 98765432109876543210"},{"x":5e2,"y":5}])");
  CHECK(numbers.drops.empty());
  CHECK(numbers.rows == std::vector<std::vector<float>>{{18446744073709551616.0F, 1},
                                                        {-123456789012345678901234.0F, 2},
                                                        {18446744073709551616.0F, 3},
                                                        {4, 4},
                                                        {500, 5}});
  const auto endless = read_text(config, R"({"x":1)" + std::string(400, '0') + R"(,"y":1})");
  CHECK(endless.drops == std::vector{DropReason::nonfinite_value});
  // The first value below the range of 64 bits has as many digits as the last one within it.
  const auto lowest =
      read_text(config, R"([{"x":-9223372036854775808,"y":1},{"x":-9223372036854775809,"y":2},)"
                        R"({"x":-9999999999999999999,"y":3}])");
  CHECK(lowest.drops.empty());
  CHECK(lowest.rows.size() == 3);
  CHECK(read_text(config, R"({"x":0123456789012345678901,"y":1})").drops ==
        std::vector{DropReason::malformed});
}

TEST_CASE("Decoder: lists in a JSON list are a row only if they are as long as the shape says") {
  DecodeConfig config{.format = "json", .shape = {3}, .features = {"x"}, .target = "y"};
  const auto reads = [&config](const std::string& x) {
    const auto read = read_text(config, R"({"x":)" + x + R"(,"y":0})");
    if (read.rows.size() == 1) return true;
    CHECK(read.drops == std::vector{DropReason::wrong_shape});
    return false;
  };
  CHECK(reads("[1,2,3]"));
  CHECK(reads("[[1,2,3]]"));
  CHECK_FALSE(reads("[[1],[2],[3]]"));
  CHECK_FALSE(reads("[1,[2],3]"));
  CHECK_FALSE(reads("[[1,2],[3]]"));
  config.features = {"x[0:3]"};
  CHECK(reads("[1,2,3]"));
  CHECK_FALSE(reads("[[1],[2],[3]]"));
  config.shape = {};
  CHECK_FALSE(reads("[[1],[2],[3]]"));
  config.features = {"x"};
  config.shape = {1, 2, 3};
  CHECK(reads("[[1,2,3],[4,5,6]]"));
  CHECK(reads("[[[1,2,3],[4,5,6]]]"));
  CHECK(reads("[1,2,3,4,5,6]"));
  CHECK_FALSE(reads("[[1,2],[3,4],[5,6]]"));
  CHECK_FALSE(reads("[[1,2,3],[4,5],[6]]"));
  CHECK_FALSE(reads("[[[1],[2],[3]],[[4],[5],[6]]]"));
  config.features = {"x[0:2]"};
  CHECK(reads("[[1,2,3],[4,5,6]]"));
  CHECK_FALSE(reads("[[1,2],[3,4,5,6]]"));
}
