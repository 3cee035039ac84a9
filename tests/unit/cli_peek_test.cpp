#include <doctest/doctest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/cli/rows/feature_ranges.h"
#include "runtime/cli/rows/peek_print.h"

using namespace rivulet;
using namespace rivulet::runtime::cli;

TEST_CASE("Peek: an image is drawn with half as many lines as it has") {
  const std::vector<float> values = {0, 0, 1, 1,  //
                                     0, 0, 1, 1,  //
                                     1, 1, 0, 0,  //
                                     1, 1, 0, 0};
  CHECK(ascii_image(values, 4, 4) == "      @@\n    @@\n");
  CHECK(ascii_image(std::vector<float>(12, 3.0F), 3, 4) == "    \n    \n");  // constant, with an odd height
}

TEST_CASE("Peek: a row says where it lies, what is to be predicted, and what its numbers are like") {
  const std::vector<float> features = {1, 2, 3, -4};
  const std::vector<float> targets = {7};
  const PeekedRow row{"mnist", {{0, 2}, {41, 1}}, 1000, features, targets};
  const auto text = describe_row(row, {{4}, 1}, true);
  for (const char* part :
       {"mnist[2] offset 41 row 1", "target 7", "[4] from -4 to 3, mean 0.5", "1, 2, 3, -4"}) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
  const auto json = nlohmann::json::parse(row_to_json(row, {{4}, 1}));
  CHECK(json["partition"] == 2);
  CHECK(json["offset"] == 41);
  CHECK(json["features"].size() == 4);
  CHECK(json["targets"][0] == 7);
  CHECK_FALSE(json.contains("label"));
}

TEST_CASE("Peek: a row says what its label was and what its features are called") {
  const std::vector<float> features = {0.5F, -2};
  const std::vector<float> targets = {1};
  const std::vector<std::string> names = {"temp", "vibration.rms"};
  const PeekedRow row{"fans", {{0, 0}, {3, 0}}, 0, features, targets, "fa\x1bult", names};
  const auto text = describe_row(row, {{2}, 1}, true);
  CHECK(text.find("target 1 = fa\\u001bult\n") != std::string::npos);
  CHECK(text.find("  first temp 0.5, vibration.rms -2\n") != std::string::npos);
  CHECK(nlohmann::json::parse(row_to_json(row, {{2}, 1}))["label"] == "fa\x1bult");
}

TEST_CASE("Peek: a dropped row says why, in JSON too, whatever bytes the reason quotes") {
  const RowPosition at{{0, 0}, {5, 0}};
  CHECK(describe_drop("t", at, DropReason::bad_label, "label 12") ==
        "t[0] offset 5 row 0  dropped: bad_label, label 12\n");
  const auto json = nlohmann::json::parse(drop_to_json("t", at, DropReason::malformed, "at \xff\xfe"));
  CHECK(json["dropped"] == "malformed");
}

TEST_CASE("Peek: ranges of each feature, and the scale and shift that bring far ones near 0 and 1") {
  runtime::Config::Decode decode;
  decode.format = "json";
  decode.scale = {2};
  decode.shift = {0, 1};
  FeatureRanges ranges({"temp", "current[0]"});
  ranges.add(std::vector<float>{90, -1});
  CHECK(ranges.describe(decode).empty());  // a single row has no deviation
  ranges.add(std::vector<float>{110, 1});
  const auto text = ranges.describe(decode);
  CAPTURE(text);
  CHECK(text.find(", 2 rows:") != std::string::npos);
  CHECK(text.find("  temp                90        100         10        110\n") != std::string::npos);
  CHECK(text.find("  current[0]          -1          0          1          1\n") != std::string::npos);
  // 90 was 45 * 2 + 0: 45 * 0.2 - 10 = -1
  CHECK(text.find("decode.json.scale = [0.2, 2]\n  decode.json.shift = [-10, 1]\n") != std::string::npos);
}

TEST_CASE("Peek: features that lie well get no advice; those of a picture are judged together") {
  runtime::Config::Decode decode;
  FeatureRanges well({"0", "1"});
  well.add(std::vector<float>{-1, 0.5F});
  well.add(std::vector<float>{1, -0.5F});
  CHECK(well.describe(decode).find("decode.") == std::string::npos);
  CHECK(well.describe(decode).find("  all ") != std::string::npos);
  decode.scale = {1};
  decode.shift = {0};
  FeatureRanges bytes({"0", "1", "2", "3"});
  bytes.add(std::vector<float>{0, 0, 200, 200});
  bytes.add(std::vector<float>{200, 200, 0, 0});
  const auto text = bytes.describe(decode);
  CAPTURE(text);
  CHECK(text.find("decode.raw.scale = 0.01\n  decode.raw.shift = -1\n") != std::string::npos);
  FeatureRanges pressure({"p"});
  pressure.add(std::vector<float>{101325});
  pressure.add(std::vector<float>{101327});
  decode.format = "csv";
  CHECK(pressure.describe(decode).find("decode.csv.scale = 1\n  decode.csv.shift = -101326\n") !=
        std::string::npos);
  FeatureRanges still({"p"});
  still.add(std::vector<float>{7});
  still.add(std::vector<float>{7});
  CHECK(still.describe(decode).find("decode.csv.scale = 1\n  decode.csv.shift = -7\n") != std::string::npos);
}

TEST_CASE("Peek: of many features that have a scale each, each is judged by itself") {
  constexpr std::size_t columns = 30;
  runtime::Config::Decode decode;
  decode.format = "csv";
  decode.shift = {0};
  decode.scale.assign(columns, 1);
  decode.scale[3] = 4;
  FeatureRanges ranges(std::vector<std::string>(columns, "x"));
  std::vector<float> row(columns, 1);
  row[3] = 40;
  ranges.add(row);
  for (float& x : row) x = -x;
  ranges.add(row);
  CHECK(ranges.describe(decode).find("decode.csv.scale = [1, 1, 1, 0.1, 1, ") != std::string::npos);
}

TEST_CASE("Peek: a value that is missing is not a number, in the row, in the ranges and in JSON") {
  const float none = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> features = {none, 3, 5};
  const std::vector<float> targets = {1};
  const std::vector<std::string> names = {"temp", "rms", "rpm"};
  const PeekedRow row{"fans", {{0, 0}, {3, 0}}, 0, features, targets, "", names};
  CHECK(describe_row(row, {{3}, 1}, true) ==
        "fans[0] offset 3 row 0  target 1\n  features [3] from 3 to 5, mean 4\n  first temp missing, rms 3, "
        "rpm 5\n");
  CHECK(nlohmann::json::parse(row_to_json(row, {{3}, 1}))["features"][0].is_null());
  const std::vector<float> nothing(3, none);
  const PeekedRow empty{"fans", {{0, 0}, {3, 0}}, 0, nothing, targets, "", {}};
  CHECK(describe_row(empty, {{3}, 1}, true).find("features [3]\n  first missing, ") != std::string::npos);
  runtime::Config::Decode decode;
  decode.format = "json";
  decode.normalize = true;
  FeatureRanges ranges(names);
  ranges.add(features);
  ranges.add(std::vector<float>{2, 4, 5});
  ranges.add(std::vector<float>{4, 5, 5});
  const auto text = ranges.describe(decode);
  CAPTURE(text);
  CHECK(text.find(", 3 rows:") != std::string::npos);
  CHECK(text.find("  temp               2          3          1          4   missing in 33.3 %\n") !=
        std::string::npos);
  CHECK(text.find("  rpm                5          5          0          5\n") != std::string::npos);
}
