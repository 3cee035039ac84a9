#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/support/decoding.h"

using namespace rivulet;
using namespace rivulet::testing;

TEST_CASE("Decoder: raw reads every combination of label and feature type") {
  for (const auto* label : {"none", "u8", "i32", "i64", "f32"}) {
    for (const auto* features : {"u8", "i16", "f32"}) {
      CAPTURE(label);
      CAPTURE(features);
      auto config = raw_config(label, features, 3);
      const std::string kind = label;
      if (kind == "none") config.classes = 0;
      std::string bytes;
      if (kind == "u8") bytes = le<std::uint8_t>({7});
      if (kind == "i32") bytes = le<std::int32_t>({7});
      if (kind == "i64") bytes = le<std::int64_t>({7});
      if (kind == "f32") bytes = le<float>({7});
      if (std::string(features) == "u8") bytes += le<std::uint8_t>({1, 2, 200});
      if (std::string(features) == "i16") bytes += le<std::int16_t>({1, 2, 200});
      if (std::string(features) == "f32") bytes += le<float>({1, 2, 200});
      const auto read = read_text(config, bytes + bytes);
      std::vector<float> expected{1, 2, 200};
      if (kind != "none") expected.push_back(7);
      CHECK(read.drops.empty());
      REQUIRE(read.rows.size() == 2);
      CHECK(read.rows[0] == expected);
      CHECK(read.rows[1] == expected);
    }
  }
}

TEST_CASE("Decoder: x * scale + shift in every format, targets as they are") {
  auto raw = raw_config("u8", "u8", 2);
  raw.scale = {0.5F};
  raw.shift = {-1.0F};
  CHECK(read_text(raw, le<std::uint8_t>({9, 0, 255})).rows.at(0) == std::vector<float>{-1.0F, 126.5F, 9});
  auto csv = csv_config();
  csv.scale = {2};
  csv.shift = {1};
  CHECK(read_text(csv, "1.5, -2 ,2").rows.at(0) == std::vector<float>{4, -3, 2});
  auto json = json_config();
  json.scale = {2};
  json.shift = {1};
  CHECK(read_text(json, json_row("0.5", "2")).rows.at(0) == std::vector<float>{2, 3, 5, 17, 2});
}

TEST_CASE("Decoder: each feature of csv and json may have a scale and a shift of its own") {
  auto csv = csv_config();
  csv.scale = {2, 10};
  csv.shift = {1};
  CHECK(read_text(csv, "1.5, -2 ,2").rows.at(0) == std::vector<float>{4, -19, 2});
  auto json = json_config();
  json.scale = {1, 2, 3, 4};
  json.shift = {0, 0, 0, 1};
  auto plain = json_config();
  const auto before = read_text(plain, json_row("0.5", "2")).rows.at(0);
  CHECK(read_text(json, json_row("0.5", "2")).rows.at(0) ==
        std::vector<float>{before[0], 2 * before[1], 3 * before[2], 4 * before[3] + 1, before[4]});
}

TEST_CASE("Decoder: every reason to drop, in every format") {
  const auto i32 = [](int label) { return le<std::int32_t>({label}) + le<float>({1, 2}); };
  const auto f32 = [](float label, float x) { return le<float>({label, x, 2}); };
  const auto raw_i32 = raw_config("i32", "f32", 2);
  const auto raw_f32 = raw_config("f32", "f32", 2);
  auto regression = raw_config("f32", "f32", 2);
  regression.classes = 0;
  auto scaled = raw_f32;
  scaled.scale = {10};
  auto named = csv_config();
  named.settings.set("decode.csv.columns", Settings::Texts{"a", "b", "c"});
  named.features = {"a", "b"};
  named.target = "c";
  auto csv_regression = csv_config();
  csv_regression.classes = 0;
  auto csv_scaled = csv_config();
  csv_scaled.scale = {1e10F};
  auto json_scaled = json_config();
  json_scaled.scale = {1e10F};
  auto json_regression = json_config();
  json_regression.classes = 0;
  const struct {
    const char* what;
    DecodeConfig config;
    std::string bytes;
    DropReason reason;
  } cases[] = {
      {"raw empty", raw_i32, "", DropReason::wrong_shape},
      {"raw short", raw_i32, i32(1).substr(0, 11), DropReason::wrong_shape},
      {"raw negative label", raw_i32, i32(-1), DropReason::bad_label},
      {"raw label too large", raw_i32, i32(10), DropReason::bad_label},
      {"raw fractional label", raw_f32, f32(1.5F, 0), DropReason::bad_label},
      {"raw label NaN", raw_f32, f32(not_a_number, 0), DropReason::nonfinite_value},
      {"raw target infinite", regression, f32(-infinite, 0), DropReason::nonfinite_value},
      {"raw feature NaN", raw_f32, f32(1, not_a_number), DropReason::nonfinite_value},
      {"raw feature infinite", raw_f32, f32(1, -infinite), DropReason::nonfinite_value},
      {"raw infinite after scale", scaled, f32(1, 3e38F), DropReason::nonfinite_value},
      {"csv empty", csv_config(), "", DropReason::malformed},
      {"csv blank", csv_config(), " \r\n\n", DropReason::malformed},
      {"csv open quote", csv_config(), "1,\"2,0", DropReason::malformed},
      {"csv text after quote", csv_config(), "1,\"2\"x,0", DropReason::malformed},
      {"csv too few columns", csv_config(), "1,2", DropReason::missing_field},
      {"csv empty field", csv_config(), "1,,0", DropReason::missing_field},
      {"csv too many columns", named, "1,2,0,9", DropReason::wrong_shape},
      {"csv word", csv_config(), "1,warm,0", DropReason::wrong_type},
      {"csv number and more", csv_config(), "1,2C,0", DropReason::wrong_type},
      {"csv two signs", csv_config(), "1,+-2,0", DropReason::wrong_type},
      {"csv label word", csv_config(), "1,2,cat", DropReason::wrong_type},
      {"csv nan", csv_config(), "1,nan,0", DropReason::nonfinite_value},
      {"csv -inf", csv_config(), "-inf,2,0", DropReason::nonfinite_value},
      {"csv beyond float", csv_config(), "1e39,2,0", DropReason::nonfinite_value},
      {"csv beyond double", csv_config(), "1,-1e999,0", DropReason::nonfinite_value},
      {"csv infinite after scale", csv_scaled, "1,1e30,0", DropReason::nonfinite_value},
      {"csv target beyond float", csv_regression, "1,2,1e39", DropReason::nonfinite_value},
      {"csv target nan", csv_config(), "1,2,nan", DropReason::nonfinite_value},
      {"csv negative label", csv_config(), "1,2,-1", DropReason::bad_label},
      {"csv fractional label", csv_config(), "1,2,0.5", DropReason::bad_label},
      {"csv label too large", csv_config(), "1,2,3", DropReason::bad_label},
      {"json empty", json_config(), "", DropReason::malformed},
      {"json cut", json_config(), json_row("1", "1").substr(0, 30), DropReason::malformed},
      {"json NaN literal", json_config(), json_row("NaN", "1"), DropReason::malformed},
      {"json leading zero", json_config(), json_row("012", "1"), DropReason::malformed},
      {"json not UTF-8", json_config(), "{\"temp\":\"\xff\"}", DropReason::malformed},
      {"json number alone", json_config(), "3", DropReason::malformed},
      {"json empty array", json_config(), "[]", DropReason::malformed},
      {"json field absent", json_config(), R"({"temp":1,"current":[1,2],"label":1})",
       DropReason::missing_field},
      {"json index absent", json_config(), R"({"temp":1,"current":[1,2],"a":{"b":[7]},"label":1})",
       DropReason::missing_field},
      {"json label absent", json_config(), R"({"temp":1,"current":[1,2],"a":{"b":[7,8]}})",
       DropReason::missing_field},
      {"json slice short", json_config(), R"({"temp":1,"current":[1],"a":{"b":[7,8]},"label":1})",
       DropReason::wrong_shape},
      {"json array for a number", json_config(), json_row("[1,2]", "1"), DropReason::wrong_shape},
      {"json empty array for a number", json_config(), json_row("[]", "1"), DropReason::wrong_shape},
      {"json text", json_config(), json_row("\"12C\"", "1"), DropReason::wrong_type},
      {"json object", json_config(), json_row("{}", "1"), DropReason::wrong_type},
      {"json null", json_config(), json_row("null", "1"), DropReason::missing_field},
      {"json label text", json_config(), json_row("1", "\"one\""), DropReason::wrong_type},
      {"json label true", json_config(), json_row("1", "true"), DropReason::wrong_type},
      {"json label null", json_config(), json_row("1", "null"), DropReason::wrong_type},
      {"json slice of a number", json_config(), R"({"temp":1,"current":5,"a":{"b":[7,8]},"label":1})",
       DropReason::wrong_type},
      {"json beyond float", json_config(), json_row("1e39", "1"), DropReason::nonfinite_value},
      {"json beyond double", json_config(), json_row("-1e999", "1"), DropReason::nonfinite_value},
      {"json infinite after scale", json_scaled, json_row("1e30", "1"), DropReason::nonfinite_value},
      {"json target beyond float", json_regression, json_row("1", "1e39"), DropReason::nonfinite_value},
      {"json negative label", json_config(), json_row("1", "-1"), DropReason::bad_label},
      {"json fractional label", json_config(), json_row("1", "0.5"), DropReason::bad_label},
      {"json label too large", json_config(), json_row("1", "3"), DropReason::bad_label},
  };
  for (const auto& c : cases) {
    CAPTURE(c.what);
    const auto read = read_text(c.config, c.bytes);
    CHECK(read.rows.empty());
    REQUIRE(read.drops.size() == 1);
    CHECK_MESSAGE(read.drops[0] == c.reason,
                  "got " << name_of(read.drops[0]) << " (" << read.details[0] << ")");
    CHECK_FALSE(read.details[0].empty());
  }
}

TEST_CASE("Decoder: tombstones and oversize records drop as one row in every format") {
  for (auto config : {raw_config("u8", "u8", 2), csv_config(), json_config()}) {
    CAPTURE(config.format);
    config.max_record_bytes = 400;
    const auto decoder = make_decoder(config);
    CHECK(read_all(*decoder, {.tombstone = true}).drops == std::vector{DropReason::tombstone});
    CHECK(read_all(*decoder, record_of(std::string(401, '\1'))).drops == std::vector{DropReason::oversize});
    const auto allowed = read_all(*decoder, record_of(std::string(400, '\1')));
    CHECK(std::count(allowed.drops.begin(), allowed.drops.end(), DropReason::oversize) == 0);
  }
}

TEST_CASE("Decoder: a bad row takes no other row of its record with it") {
  auto raw = raw_config("u8", "u8", 2);
  auto read = read_text(raw, le<std::uint8_t>({1, 1, 1, 99, 2, 2, 3, 3, 3, 4}));
  CHECK(read.rows == std::vector<std::vector<float>>{{1, 1, 1}, {3, 3, 3}});
  CHECK(read.drops == std::vector{DropReason::bad_label, DropReason::wrong_shape});

  read = read_text(csv_config(), "1,2,0\n\"open,2,0\r\n\r\n3,4,9\n5,6,2\n");
  CHECK(read.rows == std::vector<std::vector<float>>{{1, 2, 0}, {5, 6, 2}});
  CHECK(read.drops == std::vector{DropReason::malformed, DropReason::bad_label});

  const DecodeConfig json{.format = "json", .features = {"x"}, .target = "y"};
  read = read_text(json, "{\"x\":1,\"y\":2}\n{\"x\":1,\n\n{\"x\":null,\"y\":1}\r\n{\"x\":3,\"y\":4}\n");
  CHECK(read.rows == std::vector<std::vector<float>>{{1, 2}, {3, 4}});
  CHECK(read.drops == std::vector{DropReason::malformed, DropReason::missing_field});

  read = read_text(json, "garbage\n{\"x\":3,\"y\":4}\n{\"x\":1e999,\"y\":4}");
  CHECK(read.rows == std::vector<std::vector<float>>{{3, 4}});
  CHECK(read.drops == std::vector{DropReason::malformed, DropReason::nonfinite_value});

  read = read_text(json, R"([{"x":1,"y":2}, {"y":2}, 5, {"x":3,"y":4}])");
  CHECK(read.rows == std::vector<std::vector<float>>{{1, 2}, {3, 4}});
  CHECK(read.drops == std::vector{DropReason::missing_field, DropReason::malformed});
}

TEST_CASE("Decoder: a JSON document may be spread over lines") {
  const DecodeConfig json{
      .format = "json",
      .features = {"x[:]"},
      .target = "y",
  };
  auto config = json;
  config.shape = {2};
  auto read = read_text(config, "{\n \"y\": 2,\n \"x\": [\n  1,\n  3\n ]\n}\n");
  CHECK(read.rows == std::vector<std::vector<float>>{{1, 3, 2}});
  config.features = {"x[0:2].v"};
  read = read_text(config, "{\"x\": [\n{\"v\":1}\n,\n{\"v\":2}\n], \"y\":5}");
  CHECK(read.rows == std::vector<std::vector<float>>{{1, 2, 5}});
  CHECK(read.drops.empty());
  read = read_text(config, "{\n \"y\": 2,\n \"x\": [\n  1,\n  3\n ]\n");
  CHECK(read.drops == std::vector{DropReason::malformed});
}

TEST_CASE("Decoder: JSON arrays fill a shape, keys may hold dots") {
  const DecodeConfig config{
      .format = "json", .classes = 4, .shape = {2, 3}, .features = {"grid", R"(a\.b)"}, .target = "l[1]"};
  auto read = read_text(config, R"({"grid":[1,2,3,4,5],"a.b":6,"l":[0,3]})");
  REQUIRE(read.rows.size() == 1);
  CHECK(read.rows[0] == std::vector<float>{1, 2, 3, 4, 5, 6, 3});
  read = read_text(config, R"({"grid":[1,2,3,4],"a.b":6,"l":[0,3]})");
  CHECK(read.drops == std::vector{DropReason::wrong_shape});
}

TEST_CASE("Decoder: CSV columns by name, number and range, any delimiter, quotes") {
  DecodeConfig config{.format = "csv", .features = {"temp", "2:4"}, .target = "y"};
  config.settings.set("decode.csv.delimiter", std::string(";"));
  config.settings.set("decode.csv.columns", Settings::Texts{"when", "temp", "p", "q", "y"});
  const auto read = read_text(config, "\"2024;01\";+1e1;\"2\"; .5 ;-7.25\n\"say \"\"hi\"\"\";1;2;3;4");
  CHECK(read.drops.empty());
  CHECK(read.rows == std::vector<std::vector<float>>{{10, 2, 0.5F, -7.25F}, {1, 2, 3, 4}});
  CHECK(read_text(csv_config(), "1e-999,-0,2").rows == std::vector<std::vector<float>>{{0, 0, 2}});
}

TEST_CASE("Decoder: a record can be left half read and continued") {
  const DecodeConfig json{.format = "json", .features = {"x"}, .target = "y"};
  const std::pair<DecodeConfig, std::string> cases[] = {
      {raw_config("u8", "u8", 1), le<std::uint8_t>({0, 10, 1, 11, 2, 12, 3, 13})},
      {DecodeConfig{.format = "csv", .features = {"1"}, .target = "0"}, "0,10\n1,11\n2,12\n3,13"},
      {json, R"([{"x":10,"y":0},{"x":11,"y":1},{"x":12,"y":2},{"x":13,"y":3}])"},
      {json, "{\"x\":10,\"y\":0}\n{\"x\":11,\"y\":1}\n{\"x\":12,\"y\":2}\n{\"x\":13,\"y\":3}"},
  };
  for (const auto& [config, bytes] : cases) {
    CAPTURE(config.format);
    const auto decoder = make_decoder(config);
    const std::string copy = bytes;  // lives as long as in the source
    float x = 0;
    float y = 0;
    decoder->begin(record_of(copy));
    for (int i = 0; i < 4; ++i) {
      // Between two calls anything may happen except begin(): the slab was full here.
      const auto step = decoder->next({{&x, 1}, {&y, 1}});
      CHECK(step.kind == Decoded::Kind::row);
      CHECK(x == 10 + i);
      CHECK(y == i);
    }
    CHECK(decoder->next({{&x, 1}, {&y, 1}}).kind == Decoded::Kind::end);
    CHECK(decoder->next({{&x, 1}, {&y, 1}}).kind == Decoded::Kind::end);
    decoder->begin(record_of(copy));  // and a record abandoned half-way leaves no trace
    CHECK(decoder->next({{&x, 1}, {&y, 1}}).kind == Decoded::Kind::row);
    decoder->begin(record_of(copy));
    CHECK(decoder->next({{&x, 1}, {&y, 1}}).kind == Decoded::Kind::row);
    CHECK(x == 10);
  }
}
