#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "stream/decoder/fill.h"
#include "stream/narrowing.h"
#include "tests/support/decoding.h"

// Missing values, and differences that 32 bits cannot represent.
using namespace rivulet;
using namespace rivulet::testing;
using stream::Fill;

namespace {

DecodeConfig two(const std::string& format, Fill fill, bool normalizes = true) {
  DecodeConfig config{.format = format, .features = {"a", "b"}, .target = "y"};
  config.normalizes = normalizes;
  config.missing = {-999, 65535};
  config.fill = fill;
  if (format == "csv") config.settings.set("decode.csv.columns", Settings::Texts{"a", "b", "y"});
  return config;
}

std::string row_text(const std::string& format, const std::string& a, const std::string& b) {
  if (format == "csv") return a + "," + b + ",1\n";
  std::string json = R"({"y":1)";
  if (!a.empty()) json += R"(,"a":)" + a;
  if (!b.empty()) json += R"(,"b":)" + b;
  return json + "}\n";
}

/// The same texts as one record of a partition.
Read read_at(Decoder& decoder, int partition, std::int64_t offset, const std::string& text) {
  Record record = record_of(text);
  record.partition = {0, partition};
  record.offset = offset;
  return read_all(decoder, record);
}

bool nan_at(const Read& read, std::size_t row, std::size_t column) {
  return std::isnan(read.rows.at(row).at(column));
}

}  // namespace

TEST_CASE("Decoder: a missing value is a NaN for formats that know the mean, and counted by feature") {
  for (const std::string format : {"csv", "json"}) {
    CAPTURE(format);
    const auto decoder = make_decoder(two(format, {Fill::Kind::mean}));
    std::string text =
        row_text(format, "1", "") + row_text(format, "-999", "2") + row_text(format, "3", "65535.0");
    if (format == "json") text += row_text(format, "null", "7") + row_text(format, "\"\"", "7");
    const std::string copy = text;
    const auto read = read_all(*decoder, record_of(copy));
    CHECK(read.drops.empty());
    REQUIRE(read.rows.size() == (format == "csv" ? 3 : 5));
    CHECK(nan_at(read, 0, 1));
    CHECK(read.rows[0][0] == 1);
    CHECK(nan_at(read, 1, 0));
    CHECK(nan_at(read, 2, 1));
    if (format == "json") CHECK((nan_at(read, 3, 0) && nan_at(read, 4, 0)));
    const auto counts = decoder->missing();
    CHECK(std::vector(counts.begin(), counts.end()) ==
          std::vector<std::uint64_t>{format == "csv" ? 1U : 3U, 2});
  }
}

TEST_CASE("Decoder: a row without any value is dropped, and so is one that ends too soon") {
  for (const std::string format : {"csv", "json"}) {
    CAPTURE(format);
    const auto config = two(format, {Fill::Kind::mean});
    const auto read = read_text(config, row_text(format, "-999", ""));
    CHECK(read.drops == std::vector{DropReason::missing_field});
    CHECK(read.details.at(0) == "the row has no value for any feature");
    // A number also replaces the features of a whole missing row.
    CHECK(read_text(two(format, {Fill::Kind::number, 0}), row_text(format, "-999", "")).rows.size() == 1);
  }
  CHECK(read_text(two("csv", {Fill::Kind::mean}), "1").drops == std::vector{DropReason::missing_field});
}

TEST_CASE("Decoder: a missing target is dropped as ever, and text that is not a number too") {
  for (const auto kind : {Fill::Kind::mean, Fill::Kind::number, Fill::Kind::last}) {
    CHECK(read_text(two("csv", {kind}), "1,2,\n").drops == std::vector{DropReason::missing_field});
    CHECK(read_text(two("csv", {kind}), "1,n/a,3\n").drops == std::vector{DropReason::wrong_type});
    CHECK(read_text(two("json", {kind}), R"({"a":1,"b":2})").drops == std::vector{DropReason::missing_field});
    CHECK(read_text(two("json", {kind}), R"({"a":1,"b":"?","y":1})").drops ==
          std::vector{DropReason::wrong_type});
  }
}

TEST_CASE("Decoder: a target that is a code drops its row; a class may have the number of one") {
  for (const std::string format : {"csv", "json"}) {
    CAPTURE(format);
    auto config = two(format, {Fill::Kind::mean});
    config.missing = {1};
    const auto read = read_text(config, row_text(format, "2", "3"));
    CHECK(read.drops == std::vector{DropReason::missing_field});
    CHECK(read.details.at(0) == "the target is a missing-value code: 1");
    config.classes = 2;
    CHECK(read_text(config, row_text(format, "2", "3")).rows.size() == 1);
  }
}

TEST_CASE("Decoder: a row without any value has no last values either, at first") {
  const auto decoder = make_decoder(two("csv", {Fill::Kind::last}));
  CHECK(read_at(*decoder, 0, 0, ",,1\n").drops == std::vector{DropReason::missing_field});
  CHECK(read_at(*decoder, 0, 1, "2,3,1\n").rows.size() == 1);
  CHECK(read_at(*decoder, 0, 2, ",,1\n").rows.at(0) == std::vector<float>{2, 3, 1});
}

TEST_CASE("Decoder: a number in place of what is missing has the unit of the records") {
  auto config = two("csv", {Fill::Kind::number, 20});
  config.scale = {2};
  config.shift = {1};
  CHECK(read_text(config, "1,,5\n-999,1,5").rows == std::vector<std::vector<float>>{{3, 41, 5}, {41, 3, 5}});
  config.fill = {Fill::Kind::drop};
  const auto read = read_text(config, "1,,5\n-999,1,5\n1,1,5");
  CHECK(read.rows.size() == 1);
  CHECK(read.drops == std::vector(2, DropReason::missing_field));
  CHECK(read.details.at(1) == "feature \"a\" (column 0): \"-999\" is not a value, at byte 5");
}

TEST_CASE("Decoder: the last value of the partition, where there is one") {
  for (const std::string format : {"csv", "json"}) {
    CAPTURE(format);
    const auto decoder = make_decoder(two(format, {Fill::Kind::last}, false));
    const std::string whole = row_text(format, "1", "2");
    const std::string lacking = row_text(format, "3", "");
    CHECK(read_at(*decoder, 0, 0, lacking).drops == std::vector{DropReason::missing_field});
    CHECK(read_at(*decoder, 0, 1, whole).rows.size() == 1);
    CHECK(read_at(*decoder, 0, 2, lacking).rows.at(0) == std::vector<float>{3, 2, 1});
    // Another partition has no last value.
    CHECK(read_at(*decoder, 1, 7, lacking).drops == std::vector{DropReason::missing_field});
    CHECK(read_at(*decoder, 0, 3, lacking).rows.at(0) == std::vector<float>{3, 2, 1});
    // Read again from an earlier offset: later values do not count as the last.
    CHECK(read_at(*decoder, 0, 2, lacking).drops == std::vector{DropReason::missing_field});
  }
  const auto normal = make_decoder(two("json", {Fill::Kind::last}, true));
  const std::string lacking = row_text("json", "3", "");
  CHECK(nan_at(read_at(*normal, 0, 0, lacking), 0, 1));
}

TEST_CASE("Decoder: a dropped row is nobody's last one") {
  const auto decoder = make_decoder(two("csv", {Fill::Kind::last}, false));
  const std::string text = "1,2,1\n5,6,no\n7,,1\n";
  CHECK(read_at(*decoder, 0, 0, text).rows == std::vector<std::vector<float>>{{1, 2, 1}, {7, 2, 1}});
}

TEST_CASE("Decoder: a JSON list that is missing is as many missing values as its path says") {
  DecodeConfig config{.format = "json", .features = {"t", "x[0:3]", "p[0:2].v[1]"}, .target = "y"};
  config.normalizes = true;
  config.fill = {Fill::Kind::mean};
  const auto none = read_text(config, R"({"t":1,"y":1})");
  REQUIRE(none.rows.size() == 1);
  for (std::size_t i = 1; i < 6; ++i) CHECK(nan_at(none, 0, i));
  const auto some = read_text(config, R"({"t":1,"x":[1,null,3],"p":[{"v":[0,7]},{"v":null}],"y":1})");
  REQUIRE(some.rows.size() == 1);
  CHECK(nan_at(some, 0, 2));
  CHECK(some.rows[0][3] == 3);
  CHECK(some.rows[0][4] == 7);
  CHECK(nan_at(some, 0, 5));
  // A list that is present but too short is invalid.
  CHECK(read_text(config, R"({"t":1,"x":[1,2],"p":[{"v":[0,7]},{"v":[0,7]}],"y":1})").drops ==
        std::vector{DropReason::wrong_shape});
}

TEST_CASE("Decoder: raw rows have codes, too") {
  auto config = raw_config("u8", "i16", 2);
  config.missing = {-999};
  config.fill = {Fill::Kind::number, 5};
  const std::string bytes = le<std::uint8_t>({1}) + le<std::int16_t>({-999, 7});
  CHECK(read_text(config, bytes).rows.at(0) == std::vector<float>{5, 7, 1});
  config.fill = {};
  const auto dropped = read_text(config, bytes);
  CHECK(dropped.drops == std::vector{DropReason::missing_field});
  CHECK(dropped.details.at(0) == "column 0: -999 is not a value");
  CHECK(make_decoder(raw_config("u8", "u8", 2))->missing().empty());
}

TEST_CASE("Decoder: of many features the first 64 are counted one by one") {
  DecodeConfig config{.format = "csv", .features = {"1:71"}, .target = "0"};
  config.normalizes = true;
  config.fill = {Fill::Kind::mean};
  const auto decoder = make_decoder(config);
  std::string line = "1,5";
  for (int i = 1; i < 70; ++i) line += i < 60 ? ",5" : ",";
  read_all(*decoder, record_of(line));
  const auto counts = decoder->missing();
  REQUIRE(counts.size() == 65);
  CHECK(counts[59] == 0);
  CHECK(counts[60] == 1);
  CHECK(counts[63] == 1);
  CHECK(counts[64] == 6);
}

TEST_CASE("Decoder: a shift is added before a number is narrowed") {
  DecodeConfig config{.format = "csv", .features = {"0"}, .target = "1"};
  config.shift = {-1e8};
  CHECK(read_text(config, "100000001,0\n100000002.5,0").rows ==
        std::vector<std::vector<float>>{{1, 0}, {2.5F, 0}});
}

TEST_CASE("Decoder: differences that 32 bits cannot hold are counted while somebody watches") {
  DecodeConfig config{.format = "json", .features = {"big", "small"}, .target = "y"};
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += "{\"big\":" + std::to_string(100'000'000 + i) + ",\"small\":" + std::to_string(i) + ",\"y\":1}\n";
  const auto decoder = make_decoder(config);
  CHECK(decoder->narrowing().empty());
  decoder->watch_narrowing(true);
  read_all(*decoder, record_of(text));
  const auto features = decoder->narrowing();
  REQUIRE(features.size() == 2);
  CHECK(features[0].differences == 39);
  CHECK(features[0].lost == 39);  // floats are 8 apart there
  CHECK(features[0].least == 100'000'000);
  CHECK(features[0].greatest == 100'000'039);
  CHECK(features[1].lost == 0);
  CHECK(stream::loses(features[0]));
  CHECK_FALSE(stream::loses(features[1]));
  CHECK(stream::shift_for(features[0]) == -100'000'020);
  const auto words = stream::narrowing_words(*decoder);
  REQUIRE(words.size() == 1);
  CHECK(
      words[0] ==
      "feature \"big\" ranges from 100000000 to 100000039: 32 bits lose 39 of 39 differences between rows; a "
      "shift of -100000020 preserves them");
  config.shift = {-100'000'020, 0};
  const auto shifted = make_decoder(config);
  shifted->watch_narrowing(true);
  read_all(*shifted, record_of(text));
  CHECK(stream::narrowing_words(*shifted).empty());
}

TEST_CASE("Narrowing: what no shift could save, or what does not matter, is not told") {
  stream::Narrowing feature{.least = 1e8, .greatest = 1e8 + 40, .differences = 100, .lost = 10};
  CHECK(stream::loses(feature));
  feature.lost = 9;
  CHECK_FALSE(stream::loses(feature));
  feature = {.least = 1e8, .greatest = 1e8 + 40, .differences = 1000, .lost = 49};
  CHECK_FALSE(stream::loses(feature));
  feature = {.least = 0, .greatest = 1e8, .differences = 100, .lost = 100};  // a counter
  CHECK_FALSE(stream::loses(feature));
  feature = {.least = -1.7e12, .greatest = -1.7e12 + 5000, .differences = 100, .lost = 100, .scale = 2};
  CHECK(stream::shift_for(feature) == 3.4e12 - 4000);
}

TEST_CASE("Fill: words and numbers") {
  CHECK(stream::parse_fill("mean")->kind == Fill::Kind::mean);
  CHECK(stream::parse_fill("last")->kind == Fill::Kind::last);
  CHECK(stream::parse_fill("drop")->kind == Fill::Kind::drop);
  CHECK(stream::parse_fill("-1.5")->value == -1.5);
  for (const char* wrong : {"", "men", "nan", "inf", "1e999", "1x"}) CHECK_FALSE(stream::parse_fill(wrong));
  CHECK_FALSE(stream::is_fill_without_mean("mean"));
}
