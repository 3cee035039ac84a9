#include <doctest/doctest.h>

#include "runtime/config/config.h"
#include "runtime/node/node_config.h"
#include "tests/support/config_text.h"

// Keys of formats that select values and rows.
using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

std::string json_text(const std::string& more) {
  return config_base + "[decode]\nformat = \"json\"\n[decode.json]\nfeatures = [\"x\"]\ntarget = \"y\"\n" +
         more + "\n";
}

std::string csv_text(const std::string& more) {
  return config_base +
         "[decode]\nformat = \"csv\"\n[decode.csv]\nfeatures = [\"x\"]\ntarget = \"y\"\ncolumns = [\"kind\", "
         "\"x\", \"y\"]\n" +
         more + "\n";
}

stream::DecodeConfig decoded(const std::string& text) {
  const auto loaded = LoadedText(text).config;
  CHECK(texts(loaded) == Lines{});
  return decode_config(loaded.config);
}

}  // namespace

TEST_CASE("Config: what a missing value becomes goes by who knows a mean") {
  using Kind = stream::Fill::Kind;
  const auto measured = decoded(json_text(""));
  CHECK(measured.normalizes);
  CHECK(measured.fill.kind == Kind::mean);
  CHECK(measured.missing.empty());
  const auto scaled = decoded(json_text("scale = 2"));
  CHECK_FALSE(scaled.normalizes);
  CHECK(scaled.fill.kind == Kind::drop);
  CHECK(decoded(json_text("scale = 2\nfill = \"last\"")).fill.kind == Kind::last);
  CHECK(decoded(json_text("fill = \"drop\"")).fill.kind == Kind::drop);
  for (const char* number : {"fill = -0.5", "fill = \"-0.5\""}) {
    CHECK(decoded(json_text(number)).fill.kind == Kind::number);
    CHECK(decoded(json_text(number)).fill.value == -0.5);
  }
  CHECK(decoded(json_text("fill = 7")).fill.value == 7);
  CHECK(with_sets({"decode.format=csv", "decode.csv.features=['0']", "decode.csv.target='1'",
                   "decode.csv.fill=last"})
            .config.decode.fill == "last");
  CHECK(decoded(config_base).fill.kind == Kind::drop);  // raw
}

TEST_CASE("Config: codes, kind and decimal separator of the chosen format reach its decoder") {
  const auto csv =
      decoded(csv_text("missing = [-999, 65535]\nwhere = \"kind = reading\"\ndecimal = \",\"\ndelimiter = "
                       "\";\"\nshift = -1e8"));
  CHECK(csv.missing == std::vector<double>{-999, 65535});
  CHECK(csv.where == "kind = reading");
  CHECK(csv.decimal == ',');
  CHECK(csv.shift == std::vector<double>{-1e8});
  CHECK(csv.normalizes);
  CHECK(decoded(json_text("missing = -1")).missing == std::vector<double>{-1});
  CHECK(decoded(json_text("missing = []")).missing.empty());
  CHECK(decoded(json_text("")).decimal == '.');
}

TEST_CASE("Config: wrong codes, fills, kinds and signs are refused where they stand") {
  const auto json = [](const std::string& line) { return problems_of(json_text(line)); };
  const auto csv = [](const std::string& line) { return problems_of(csv_text(line)); };
  CHECK(
      json("missing = [\"n/a\"]") ==
      Lines{
          "device.toml:13:11: error: 'decode.json.missing' must be a number or list of numbers, not the list "
          "[\"n/a\"]"});
  CHECK(json("missing = [nan]") == Lines{"device.toml:13:11: error: 'decode.json.missing' has an item that "
                                         "is nan, must be a finite number"});
  CHECK(json("fill = \"men\"") == Lines{"device.toml:13:8: error: 'decode.json.fill' is 'men', must be "
                                        "'mean', 'last', 'drop' or a number"});
  CHECK(json("fill = true") == Lines{"device.toml:13:8: error: 'decode.json.fill' must be 'mean', 'last', "
                                     "'drop' or a number, not true"});
  CHECK(json("fill = \"mean\"\nscale = 1") ==
        Lines{"device.toml:13:8: error: 'decode.json.fill' is 'mean', which requires "
              "'decode.json.scale' = 'auto': use that, a number, 'last' or 'drop'"});
  CHECK(json("where = \"kind\"") ==
        Lines{"device.toml:13:9: error: 'decode.json.where' is 'kind', must be FIELD = VALUE, like \"type = "
              "reading\""});
  CHECK(json("where = \"a[ = 1\"") == Lines{"device.toml:13:9: error: 'decode.json.where': \"a[\", position "
                                            "2: expected [index] or [begin:end]"});
  CHECK(csv("where = \"type = reading\"") ==
        Lines{"device.toml:14:9: error: 'decode.csv.where' is 'type = reading', but column 'type' is not in "
              "'decode.csv.columns'"});
  CHECK(csv("where = \"3 = reading\"") == Lines{"device.toml:14:9: error: 'decode.csv.where' is '3 = "
                                                "reading', but column '3' is beyond the last column of "
                                                "'decode.csv.columns'"});
  CHECK(csv("where = \"0 = reading\"") == Lines{});
  CHECK(
      csv("decimal = \",\"") ==
      Lines{"device.toml:14:11: error: 'decode.csv.decimal' and 'decode.csv.delimiter' are both ',': numbers "
            "would be split at the decimal separator; use a different delimiter, such as ';'"});
  CHECK(csv("decimal = \"x\"") ==
        Lines{"device.toml:14:11: error: 'decode.csv.decimal' is 'x', must be '.' or ','"});
  // Keys of unused formats are not checked.
  CHECK(json("[decode.csv]\ndecimal = \",\"") == Lines{});
  CHECK(problems_of(config_base + "[decode]\nraw = { fill = \"mean\" }\n") ==
        Lines{"device.toml:9:16: error: 'decode.raw.fill' is 'mean', must be 'last', 'drop' or a number"});
}
