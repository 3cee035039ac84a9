#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "stream/decoder/json_place.h"
#include "stream/text_body.h"
#include "tests/support/decoding.h"

// Real-world rows: bytes around the text of a record, numbers as people write them, and rows of another kind.
using namespace rivulet;
using namespace rivulet::testing;

namespace {

DecodeConfig plain_json() {
  return {.format = "json", .features = {"temp", "on"}, .target = "y"};
}

DecodeConfig plain_csv() {
  DecodeConfig config{.format = "csv", .features = {"temp", "on"}, .target = "y"};
  config.settings.set("decode.csv.columns", Settings::Texts{"type", "temp", "on", "y"});
  return config;
}

using Rows = std::vector<std::vector<float>>;

const std::string bom = "\xEF\xBB\xBF";
const std::string framed(std::uint8_t schema, const std::string& body) {
  return std::string("\0\0\0\0", 4) + static_cast<char>(schema) + body;
}

}  // namespace

TEST_CASE("Decoder: a byte-order mark before text is passed over") {
  CHECK(read_text(plain_json(), bom + R"({"temp":1,"on":2,"y":3})").rows == Rows{{1, 2, 3}});
  CHECK(read_text(plain_csv(), bom + "7,1,2,3\n7,4,5,6").rows == Rows{{1, 2, 3}, {4, 5, 6}});
  DecodeConfig first = csv_config();
  CHECK(read_text(first, bom + "1,2,0").rows == Rows{{1, 2, 0}});
}

TEST_CASE("Decoder: text in Confluent's frame is read, binary in it is named") {
  const std::string json = R"({"temp":1,"on":2,"y":3})";
  CHECK(read_text(plain_json(), framed(7, json)).rows == Rows{{1, 2, 3}});
  CHECK(read_text(plain_json(), framed(7, bom + " [" + json + "]")).rows == Rows{{1, 2, 3}});
  CHECK(read_text(csv_config(), framed(7, "1,2,0")).rows == Rows{{1, 2, 0}});
  for (const auto& config : {plain_json(), plain_csv()}) {
    const auto read = read_text(config, framed(42, "\x02\x08temp\x01"));
    CHECK(read.rows.empty());
    CHECK(read.drops == std::vector{DropReason::malformed});
    CHECK(read.details.at(0) == "looks like Avro or Protobuf in Confluent's wire format, schema 42");
  }
  // A single zero is not a frame, nor is UTF-16.
  CHECK(stream::text_body(record_of(std::string(5, '\0')).value, stream::TextKind::json).binary == false);
  const std::string wide("\0{\0\"\0t", 6);
  CHECK_FALSE(stream::text_body(record_of(wide).value, stream::TextKind::json).schema);
}

TEST_CASE("Decoder: numbers in texts, and true and false, are numbers") {
  CHECK(read_text(plain_json(), R"({"temp":" 23.5 ","on":true,"y":"-4e1"})").rows == Rows{{23.5F, 1, -40}});
  CHECK(read_text(plain_json(), R"({"temp":"true","on":false,"y":3})").rows == Rows{{1, 0, 3}});
  CHECK(read_text(plain_csv(), "a,\"23.5\",true,3\na,1,False,3").rows == Rows{{23.5F, 1, 3}, {1, 0, 3}});
  CHECK(read_text(plain_csv(), "a,yes,true,3").drops == std::vector{DropReason::wrong_type});
  DecodeConfig classes = json_config();
  CHECK(read_text(classes, json_row("1", "\"2\"")).rows.at(0).back() == 2);
}

TEST_CASE("Decoder: a decimal comma, where it is configured") {
  DecodeConfig csv = plain_csv();
  csv.decimal = ',';
  csv.settings.set("decode.csv.delimiter", std::string(";"));
  CHECK(read_text(csv, "a;23,5;-1,5e1;0,25\na;7;8;9").rows == Rows{{23.5F, -15, 0.25F}, {7, 8, 9}});
  // A point has another meaning there.
  CHECK(read_text(csv, "a;1.234,5;1;1\na;1.5;1;1\na;1,2,3;1;1").drops ==
        std::vector(3, DropReason::wrong_type));
  DecodeConfig json = plain_json();
  json.decimal = ',';
  CHECK(read_text(json, R"({"temp":"23,5","on":1.5,"y":"0,5"})").rows == Rows{{23.5F, 1.5F, 0.5F}});
  csv.settings.set("decode.csv.delimiter", std::string(","));
  for (const auto* entry : stream::builtin_decoders()) {
    if (entry->name != "csv") continue;
    const auto made = entry->make(csv);
    REQUIRE_FALSE(made);
    CHECK(made.error().message ==
          "decode.csv.delimiter and decode.csv.decimal are both \",\": a number would end at its decimal "
          "separator");
  }
}

TEST_CASE("Decoder: rows of another kind are left out, not wrong") {
  DecodeConfig json = plain_json();
  json.where = "meta.type = reading";
  const std::string of_kind = R"(,"temp":1,"on":2,"y":3})";
  const auto read =
      read_text(json, R"({"meta":{"type":"reading"})" + of_kind + "\n" + R"({"meta":{"type":"alarm"}})" +
                          "\n" + R"({"text":"no kind"})" + "\n" + R"({"meta":{"type":"reading"},"y":3})");
  CHECK(read.rows == Rows{{1, 2, 3}});
  CHECK(read.drops == std::vector{DropReason::filtered, DropReason::filtered, DropReason::missing_field});
  CHECK(read.details.at(0) == "decode.json.where does not select this row");
  json.where = "meta.type = 2";
  CHECK(read_text(json, R"({"meta":{"type":2})" + of_kind).rows.size() == 1);
  CHECK(read_text(json, R"({"meta":{"type":"2"})" + of_kind).rows.size() == 1);
  CHECK(read_text(json, R"({"meta":{"type":null})" + of_kind).drops == std::vector{DropReason::filtered});
  DecodeConfig csv = plain_csv();
  csv.where = "type=\"a = b\"";
  const auto lines = read_text(csv, "a = b,1,2,3\nalarm,hot\n\"a = b\",4,5,6\n");
  CHECK(lines.rows == Rows{{1, 2, 3}, {4, 5, 6}});
  CHECK(lines.drops == std::vector{DropReason::filtered});
  csv.where = "0 = a";
  CHECK(read_text(csv, "a,1,2,3\nb,1,2,3").rows.size() == 1);
}

TEST_CASE("Decoder: a drop names feature, value and place") {
  const auto detail = [](const DecodeConfig& config, const std::string& text) {
    const auto read = read_text(config, text);
    REQUIRE(read.details.size() == 1);
    return read.details[0];
  };
  CHECK(detail(plain_csv(), "reading,n/a,1,3") ==
        "feature \"temp\" (column 1): \"n/a\" is not a number, at byte 8");
  CHECK(detail(plain_csv(), "r,1,2,3\nr,1,,3") == "feature \"on\" (column 2) has no value");
  CHECK(detail(csv_config(), "1,1e39,0") == "column 1: \"1e39\" is not finite as a 32-bit float, at byte 2");
  CHECK(detail(csv_config(), bom + "1,x,0") == "column 1: \"x\" is not a number, at byte 5");
  CHECK(detail(plain_json(), R"({"y":1, "temp" : "n/a", "on":1})") ==
        R"(feature "temp": "n/a" is not a number, at byte 17)");
  CHECK(detail(plain_json(), R"([{"temp":1,"on":1,"y":1}, {"temp":1,"on":{"a":[1,"}"]},"y":1}])") ==
        R"(feature "on": {"a":[1,"}"]} is not a number, at byte 41)");
  CHECK(detail(json_config(), "{\"temp\":1,\"current\":[1,2],\"a\":{\"b\":[7,8]},\"label\":1}\n" +
                                  json_row("1", "1").replace(21, 1, "\"\\u00e9\"")) ==
        "feature \"current[0]\": \"\\u00e9\" is not a number, at byte 74");
  CHECK(detail(plain_json(), R"({"on":1,"y":1})") == R"(feature "temp" has no value)");
  CHECK(detail(plain_json(), R"({"temp":null,"on":1,"y":1})") ==
        R"(feature "temp": null is not a value, at byte 8)");
  DecodeConfig list{.format = "json", .shape = {3}, .features = {"x"}, .target = "y"};
  CHECK(detail(list, R"({"x":[1,2,"z"],"y":1})") == R"(feature "x": "z" is not a number, at byte 10)");
}

TEST_CASE("JSON place: the value at the end of a path, as it is written") {
  const auto at = [](const std::string& json, const std::string& path) -> std::string {
    const auto steps = stream::parse_json_path(path).value().steps;
    const auto found = stream::value_in(json, steps);
    return found ? std::string(*found) : "none";
  };
  const std::string json = R"({ "a" : [ 1 , {"b": "x,\"]}" } , [ [2] , -3e4 ] ] , "c":null })";
  CHECK(at(json, "a[0]") == "1");
  CHECK(at(json, "a[1].b") == R"("x,\"]}")");
  CHECK(at(json, "a[2][1]") == "-3e4");
  CHECK(at(json, "a[2]") == "[ [2] , -3e4 ]");
  CHECK(at(json, "c") == "null");
  for (const char* none : {"d", "a[3]", "a.b", "c.d", "a[0][0]", "a[0:2]"}) CHECK(at(json, none) == "none");
  // It ends for any input.
  for (std::size_t size = 0; size <= json.size(); ++size) at(json.substr(0, size), "a[2][1]");
}
