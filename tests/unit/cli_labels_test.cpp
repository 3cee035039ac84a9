#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "runtime/cli/rows/label_counts.h"
#include "runtime/cli/rows/row_survey.h"
#include "tests/support/decoding.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::runtime::cli;
using namespace rivulet::testing;

namespace {

Config json_config_of(std::uint32_t classes, std::vector<std::string> names = {}) {
  Config config;
  config.decode.format = "json";
  config.decode.target = "state";
  config.decode.classes = std::move(names);
  config.model.classes = classes;
  return config;
}

/// Advice about labels; each occurs once unless given a count.
std::string said(const Config& config, const std::vector<std::pair<std::string, int>>& labels,
                 bool text = false) {
  LabelCounts counts;
  for (const auto& [label, rows] : labels)
    for (int i = 0; i < rows; ++i) counts.add(label, text);
  return counts.describe(config);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("Labels: each with its rows and share, the most frequent first, and what the largest means") {
  const auto text = said(json_config_of(2), {{"1", 3}, {"0", 13}});
  CHECK(text ==
        "labels:\n"
        "  label          rows    share\n"
        "  0                13   81.2 %\n"
        "  1                 3   18.8 %\n"
        "baseline (majority class): 0, 81.2 % of 16 labels\n");
  CHECK(said(json_config_of(2), {}).empty());
}

TEST_CASE("Labels: text wants a list, ready to paste, in an order that does not depend on the rows") {
  for (const auto& labels :
       {std::vector<std::pair<std::string, int>>{{"ok", 3}, {"fault", 1}}, {{"fault", 2}, {"ok", 1}}})
    CHECK(contains(said(json_config_of(10), labels, true), "  decode.json.classes = [\"fault\", \"ok\"]\n"));
  // Text that looks like a number is still text.
  CHECK(contains(said(json_config_of(10), {{"0", 1}, {"1", 1}}, true),
                 "  decode.json.classes = [\"0\", \"1\"]\n"));
  CHECK(contains(said(json_config_of(10), {{"10", 1}, {"9", 1}, {"a \"b\"", 1}}, true),
                 R"(  decode.json.classes = ["9", "10", "a \"b\""])"));
}

TEST_CASE("Labels: numbers that do not fit the classes are told which key mends it") {
  CHECK_FALSE(contains(said(json_config_of(3), {{"0", 1}, {"2", 1}}), "decode"));
  CHECK(contains(said(json_config_of(3), {{"0", 1}, {"1", 1}, {"2", 1}, {"3", 1}}), "model.classes = 4\n"));
  CHECK(contains(said(json_config_of(3), {{"4", 1}, {"10", 1}, {"7", 1}}),
                 "decode.json.classes = [\"4\", \"7\", \"10\"]\n"));
  CHECK(contains(said(json_config_of(3), {{"0.5", 1}, {"1", 1}}), "train.loss = \"mse\"\n"));
  auto raw = json_config_of(3);
  raw.decode.format = "raw";
  CHECK_FALSE(contains(said(raw, {{"4", 1}, {"10", 1}}), "decode"));  // it has no list
}

TEST_CASE("Labels: what a list lacks is added behind, so that classes keep their numbers") {
  const auto config = json_config_of(2, {"ok", "fault"});
  CHECK_FALSE(contains(said(config, {{"ok", 2}, {"fault", 1}}), "decode"));
  CHECK(contains(said(config, {{"ok", 2}, {"alarm", 3}}),
                 "3 rows have labels that are not in the list; to add the labels, set\n"
                 "  decode.json.classes = [\"ok\", \"fault\", \"alarm\"]\n"));
}

TEST_CASE("Labels: a long list is cut, its rows are counted, and no list is advised") {
  std::vector<std::pair<std::string, int>> labels;
  for (int i = 0; i < 12'000; ++i) labels.emplace_back("id-" + std::to_string(i), 1);
  const auto text = said(json_config_of(2), labels, true);
  CHECK(contains(text, "  others        11980\n"));
  CHECK(contains(text, "too many for a list of classes"));
  CHECK_FALSE(contains(text, "decode.json.classes"));
}

TEST_CASE("Survey: labels of dropped rows count, drops are summed up by reason, with an example") {
  const auto config = json_config_of(2);
  const DecodeConfig decode{.format = "json", .classes = 2, .features = {"temp"}, .target = "state"};
  const auto decoder = make_decoder(decode);
  RowSurvey survey(config, *decoder);
  const std::string rows =
      "{\"temp\":1,\"state\":\"ok\"}\n{\"temp\":2,\"state\":\"fault\"}\n"
      "{\"temp\":3,\"state\":1}\n{\"state\":1}\n{\"temp\":4,\"state\":1}";
  survey_record(*decoder, record_of(rows), survey);
  CHECK(survey.rows() == 2);
  CHECK(survey.dropped() == 3);
  CHECK(survey.labels().largest() == "baseline (majority class): 1, 50.0 % of 4 labels");
  const auto text = survey.describe(config);
  CAPTURE(text);
  CHECK(contains(text, "  temp"));
  CHECK(contains(text, "decode.json.classes = [\"1\", \"fault\", \"ok\"]\n"));
  CHECK(contains(text,
                 "dropped 3 of 5 rows:\n  missing_field          1  feature \"temp\" has no value\n"
                 "  wrong_type             2  the label is not a number"));
  CHECK(contains(survey.worst_drop(), "2 wrong_type (the label is not a number"));
}

TEST_CASE("Survey: a regression has a target and no labels") {
  auto config = json_config_of(2);
  config.train.loss = "mse";
  const auto decoder = make_decoder({.format = "json", .features = {"temp"}, .target = "state"});
  RowSurvey survey(config, *decoder);
  survey_record(*decoder, record_of("{\"temp\":1,\"state\":20}\n{\"temp\":2,\"state\":40}"), survey);
  const auto text = survey.describe(config);
  CAPTURE(text);
  CHECK(contains(text, "target values, 2 rows:\n"));
  CHECK(contains(text, "  state             20         30         10         40\n"));
  CHECK_FALSE(contains(text, "labels"));
}

TEST_CASE("Survey: rows of another kind are counted apart, and numbers that lose are said") {
  auto config = json_config_of(2);
  DecodeConfig decode{.format = "json", .classes = 2, .features = {"temp"}, .target = "state"};
  decode.where = "kind = reading";
  const auto decoder = make_decoder(decode);
  decoder->watch_narrowing(true);
  RowSurvey survey(config, *decoder);
  std::string rows = "{\"kind\":\"alarm\",\"text\":\"hot\"}\n";
  for (int i = 0; i < 30; ++i)
    rows += R"({"kind":"reading","temp":)" + std::to_string(1'000'000'000 + i) + ",\"state\":1}\n";
  survey_record(*decoder, record_of(rows), survey);
  survey.take_narrowing(*decoder);
  CHECK(survey.rows() == 30);
  CHECK(survey.dropped() == 0);
  CHECK(survey.filtered() == 1);
  const auto text = survey.describe(config);
  CAPTURE(text);
  CHECK(contains(text, "excluded 1 of 31 rows: they do not match 'where'\n"));
  CHECK_FALSE(contains(text, "dropped"));
  CHECK(contains(text,
                 "warning: feature \"temp\" ranges from 1000000000 to 1000000029: 32 bits lose 29 of 29"));
  CHECK(survey.shifts() == std::vector<double>{-1'000'000'010});
}
