#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "stream/decoder/class_names.h"
#include "stream/decoder/json_path.h"
#include "tests/support/decoding.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

DecodeConfig json_of(std::vector<std::string> names) {
  const auto count = static_cast<std::uint32_t>(names.size());
  return {.format = "json",
          .classes = count,
          .features = {"x"},
          .target = "label",
          .class_names = std::move(names)};
}

DecodeConfig csv_of(std::vector<std::string> names) {
  auto config = json_of(std::move(names));
  config.format = "csv";
  config.features = {"0"};
  config.target = "1";
  return config;
}

std::string row_of(const std::string& label) {
  return R"({"x":1,"label":)" + label + "}\n";
}

/// Classes of the decoded rows.
std::vector<float> classes(const Read& read) {
  std::vector<float> out;
  for (const auto& row : read.rows) out.push_back(row.back());
  return out;
}

/// label() after each row and drop.
std::vector<std::string> labels(const DecodeConfig& config, const std::string& text) {
  const auto decoder = make_decoder(config);
  std::vector<std::string> out;
  float x = 0;
  float y = 0;
  decoder->begin(record_of(text));
  while (decoder->next({{&x, 1}, {&y, 1}}).kind != Decoded::Kind::end) out.push_back(decoder->label());
  return out;
}

}  // namespace

TEST_CASE("Class names: every name has its place, whatever order the list is in") {
  const stream::ClassNames names({"ok", "fault", "", "OK", "okay"});
  CHECK(names.find("ok") == 0U);
  CHECK(names.find("fault") == 1U);
  CHECK(names.find("") == 2U);
  CHECK(names.find("OK") == 3U);
  CHECK(names.find("okay") == 4U);
  for (const char* other : {"o", "okays", "zebra", "Fault", " ok"}) CHECK_FALSE(names.find(other));
  CHECK(stream::ClassNames({}).empty());
}

TEST_CASE("Decoder: a JSON label's class is its place in the list") {
  const auto text = json_of({"ok", "fault"});
  auto read = read_text(text, row_of(R"("fault")") + row_of(R"("ok")") + row_of(R"("\u006fk")"));
  CHECK(classes(read) == std::vector<float>{1, 0, 0});
  CHECK(read.drops.empty());
  const auto yes_no = json_of({"true", "false"});
  CHECK(classes(read_text(yes_no, row_of("true") + row_of("false") + row_of(R"("true")"))) ==
        std::vector<float>{0, 1, 0});
  const auto numbers = json_of({"10", "-2", "0.5", "18446744073709551615"});
  CHECK(classes(read_text(numbers, row_of("-2") + row_of("10.0") + row_of("5e-1") + row_of("\"10\"") +
                                       row_of("10") + row_of("18446744073709551615"))) ==
        std::vector<float>{1, 0, 2, 0, 0, 3});
}

TEST_CASE("Decoder: a CSV label's class is its place in the list, in quotes too") {
  const auto config = csv_of({"ok", "6\" pipe", "1", "a, b"});
  const auto read = read_text(config, "5,ok\n5, ok \r\n5,\"ok\"\n5,\"6\"\" pipe\"\n5,1\n5,\"a, b\"\n");
  CHECK(classes(read) == std::vector<float>{0, 0, 0, 1, 2, 3});
  CHECK(read.drops.empty());
}

TEST_CASE("Decoder: a label that is not in the list is dropped as a bad label, and said") {
  auto read = read_text(json_of({"ok", "fault"}),
                        row_of(R"("warning")") + row_of("0") + row_of("true") + row_of(R"("ok")"));
  CHECK(classes(read) == std::vector<float>{0});
  CHECK(read.drops == std::vector(3, DropReason::bad_label));
  CHECK(read.details.at(0) == "the label is not one of the configured classes: warning");
  read = read_text(csv_of({"1", "2"}), "5,1.0\n5,ok\n5,2\n");
  CHECK(classes(read) == std::vector<float>{1});
  CHECK(read.drops == std::vector(2, DropReason::bad_label));
  // Values that cannot be labels have a wrong type, as without a list.
  read = read_text(json_of({"ok", "fault"}), row_of("null") + row_of("[1]") + row_of("{}"));
  CHECK(read.drops == std::vector(3, DropReason::wrong_type));
  CHECK(read_text(csv_of({"ok", "no"}), "5,\n").drops == std::vector{DropReason::missing_field});
}

TEST_CASE("Decoder: text without a list is told what is missing") {
  DecodeConfig config{.format = "json", .classes = 2, .features = {"x"}, .target = "label"};
  auto read = read_text(config, row_of(R"("fault")") + row_of("true"));
  CHECK(read.drops == std::vector(2, DropReason::wrong_type));
  CHECK(read.details.at(0) == "the label is not a number, and no list of classes is configured: fault");
  config.classes = 0;
  CHECK(read_text(config, row_of("true")).details.at(0) == "the target is not a number: true");
  config.class_names = {"true", "false"};  // of a regression: unused
  CHECK(read_text(config, row_of("true")).drops == std::vector{DropReason::wrong_type});
  CHECK(classes(read_text(config, row_of("2.5"))) == std::vector<float>{2.5F});
}

TEST_CASE("Decoder: a list of another length than the model has classes is refused") {
  auto config = json_of({"ok", "fault"});
  config.classes = 3;
  for (const auto* entry : stream::builtin_decoders()) {
    if (entry->name != "json") continue;
    const auto made = entry->make(config);
    REQUIRE_FALSE(made);
    CHECK(made.error().message == "decode.json.classes has 2 names, but model.classes is 3");
  }
}

TEST_CASE("Decoder: what a label was is known of rows and drops") {
  const std::string json = row_of(R"("fault")") + row_of("2.50") + row_of("true") + row_of("null");
  CHECK(labels(json_of({"ok", "fault"}), json) == std::vector<std::string>{"fault", "2.5", "true", ""});
  DecodeConfig plain{.format = "json", .classes = 2, .features = {"x"}, .target = "label"};
  CHECK(labels(plain, json + row_of("1")) == std::vector<std::string>{"fault", "2.5", "true", "", "1"});
  CHECK(labels(csv_of({"ok", "a\"b"}), "1,ok\n1,\"a\"\"b\"\nx,ok\n1,no\n") ==
        std::vector<std::string>{"ok", "a\"b", "", "no"});
}

TEST_CASE("Decoder: features are called what the configuration calls them") {
  const DecodeConfig json{
      .format = "json", .features = {"temp", "a.b[3]", "axis[1:3].xy[0:2]", R"(odd\.key)"}, .target = "y"};
  const auto decoder = make_decoder(json);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < decoder->shape().columns(); ++i) names.push_back(decoder->feature(i));
  CHECK(names == std::vector<std::string>{"temp", "a.b[3]", "axis[1].xy[0]", "axis[1].xy[1]", "axis[2].xy[0]",
                                          "axis[2].xy[1]", R"(odd\.key)"});
  auto open = json;
  open.features = {"grid", "temp"};
  open.shape = {5};
  CHECK(make_decoder(open)->feature(0).empty());  // the list has no known end
  CHECK(make_decoder(open)->column_name(1) == "1");
  open.features = {"fan.x[:]"};
  CHECK(make_decoder(open)->column_name(1) == "fan.x[1]");
  DecodeConfig csv{.format = "csv", .features = {"rms", "0:2"}, .target = "label"};
  csv.settings.set("decode.csv.columns", Settings::Texts{"time", "temp", "rms", "label"});
  CHECK(make_decoder(csv)->feature(0) == "rms");
  CHECK(make_decoder(csv)->feature(2) == "temp");
  CHECK(make_decoder(raw_config("u8", "u8", 2))->feature(0).empty());
}
