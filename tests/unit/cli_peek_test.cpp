#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <vector>

#include "runtime/cli/peek_print.h"

using namespace rivulet;
using namespace rivulet::runtime::cli;

TEST_CASE("Peek: an image is drawn with half as many lines as it has") {
  const std::vector<float> values = {0, 0, 1, 1,  //
                                     0, 0, 1, 1,  //
                                     1, 1, 0, 0,  //
                                     1, 1, 0, 0};
  CHECK(ascii_image(values, 4, 4) == "      @@\n    @@\n");
  CHECK(ascii_image(std::vector<float>(12, 3.0F), 3, 4) == "    \n    \n");  // flat, and an odd height
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
}

TEST_CASE("Peek: a dropped row says why, in JSON too, whatever bytes the reason quotes") {
  const RowPosition at{{0, 0}, {5, 0}};
  CHECK(describe_drop("t", at, DropReason::bad_label, "label 12") ==
        "t[0] offset 5 row 0  dropped: bad_label, label 12\n");
  const auto json = nlohmann::json::parse(drop_to_json("t", at, DropReason::malformed, "at \xff\xfe"));
  CHECK(json["dropped"] == "malformed");
}
