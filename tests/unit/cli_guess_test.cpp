#include <doctest/doctest.h>

#include <fstream>
#include <string>
#include <vector>

#include "core/rng.h"
#include "runtime/cli/rows/config_from_topic.h"
#include "runtime/cli/rows/topic_guess.h"
#include "tests/support/decoding.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::runtime::cli;
using namespace rivulet::testing;

namespace {

using Records = std::vector<std::string>;

/// The guessed value of a key, "" if none; the error if the guess failed.
std::string guessed(const Records& records, const std::string& key, const std::string& target = "") {
  const auto guess = guess_rows(records, target);
  if (!guess) return guess.error().message;
  for (const auto& [name, value] : guess.value().keys)
    if (name == key) return value;
  return "";
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Records machines(std::size_t rows, const std::vector<std::string>& states) {
  Records out;
  for (std::size_t i = 0; i < rows; ++i)
    out.push_back(R"({"id":)" + std::to_string(i) + R"(,"temp":)" + std::to_string(60 + i % 7) +
                  R"(.5,"vibration":{"rms":0.5},"current":[1,2,3],"site":"north","note":null,"state":)" +
                  states[i % states.size()] + "}");
  return out;
}

/// The problems of a file with this text, and its configuration.
LoadedConfig load_text(const std::string& text) {
  const TempDir folder;
  ConfigInput input;
  input.file = (folder.path() / "device.toml").string();
  std::ofstream(input.file) << text;
  return load_config(input);
}

ConfigInput brokers_of(std::vector<std::string> sets = {}) {
  ConfigInput input;
  input.flags = {{"source.kafka.properties.bootstrap.servers", "\"h:1\""}};
  input.sets = std::move(sets);
  return input;
}

}  // namespace

TEST_CASE("Guess: JSON with text labels: numbers are features, lists have their length, ids are left out") {
  const auto records = machines(30, {"\"ok\"", "\"ok\"", "\"fault\""});
  CHECK(guessed(records, "decode.format") == "\"json\"");
  CHECK(guessed(records, "decode.json.target") == "\"state\"");
  CHECK(guessed(records, "decode.json.features") == R"(["temp", "vibration.rms", "current[0:3]"])");
  CHECK(guessed(records, "decode.json.classes") == R"(["fault", "ok"])");
  CHECK(guessed(records, "train.loss") == "\"cross_entropy\"");
  CHECK(guessed(records, "model.classes").empty());
  const auto notes = guess_rows(records, "").value().notes;
  CHECK(std::count(notes.begin(), notes.end(), "omitted, since their names denote a time or an id: id") == 1);
  CHECK(std::count(
            notes.begin(), notes.end(),
            "omitted, since they are not numeric or occur in less than half of the rows: site, note") == 1);
}

TEST_CASE("Guess: labels that are numbers from 0 need no list, others do; true and false do") {
  CHECK(guessed(machines(30, {"0", "1", "2"}), "model.classes") == "3");
  CHECK(guessed(machines(30, {"0", "1", "2"}), "decode.json.classes").empty());
  CHECK(guessed(machines(30, {"10", "-1", "20"}), "decode.json.classes") == R"(["-1", "10", "20"])");
  CHECK(guessed(machines(30, {"true", "false"}), "decode.json.classes") == R"(["false", "true"])");
  CHECK(guessed(machines(30, {"\"0\"", "\"1\""}), "decode.json.classes") == R"(["0", "1"])");
}

TEST_CASE("Guess: a target with many values or a fraction is a regression") {
  const auto of_temp = machines(30, {"\"ok\"", "\"fault\""});
  CHECK(guessed(of_temp, "train.loss", "temp") == "\"mse\"");
  CHECK(guessed(of_temp, "decode.json.target", "temp") == "\"temp\"");
  CHECK(guessed(of_temp, "decode.json.features", "temp") == R"(["vibration.rms", "current[0:3]"])");
  CHECK(guessed(machines(30, {"0.5", "1.5"}), "train.loss") == "\"mse\"");
}

TEST_CASE("Guess: what cannot be guessed is said with what there is") {
  Records unclear;
  for (int i = 0; i < 30; ++i) unclear.push_back(R"({"a":1,"b":2.5})");
  CHECK(contains(guessed(unclear, "decode.json.target"),
                 "choose one with --target NAME from the fields: a, b"));
  CHECK(contains(guessed(unclear, "", "c"),
                 "--target 'c' is not one of the fields that have one value per row: a, b"));
  CHECK(contains(guessed(machines(9, {"\"ok\""}), ""), "'state' is 'ok' in every row"));
  Records texts;
  for (int i = 0; i < 200; ++i) texts.push_back(R"({"a":1,"label":"serial )" + std::to_string(i) + "\"}");
  CHECK(contains(guessed(texts, ""), "'label' has 200 different texts in 200 rows"));
  CHECK(contains(guessed({R"({"label":"x"})", R"({"label":"y"})"}, ""), "no features to learn from"));
  CHECK(contains(guessed({}, ""), "no record"));
  CHECK(contains(guessed({"\x01\x02\x03", "\x04"}, ""), "records of 1 to 3 bytes are neither JSON nor CSV"));
}

TEST_CASE("Guess: rows in arrays and in lines are rows; broken lines are said") {
  const std::string row = R"({"x":1,"label":"a"})";
  const std::string other = R"({"x":2,"label":"b"})";
  const auto guess = guess_rows({"[" + row + "," + other + "]", row + "\n{oops\n" + other, other}, "");
  REQUIRE(guess);
  const auto& notes = guess.value().notes;
  CHECK(std::count(notes.begin(), notes.end(), "1 records or lines are not valid json: devices drop them") ==
        1);
  CHECK(guessed({"[" + row + "," + other + "]"}, "decode.json.classes") == R"(["a", "b"])");
}

TEST_CASE("Guess: CSV by its delimiter, with a heading or without, the last column last") {
  Records rows;
  for (int i = 0; i < 30; ++i)
    rows.push_back(std::to_string(i) + ".5;\"a; b\";" + std::to_string(i % 4) + ";" +
                   (i % 3 ? "ok" : "fault"));
  CHECK(guessed(rows, "decode.csv.delimiter") == "\";\"");
  CHECK(guessed(rows, "decode.csv.features") == R"(["0", "2"])");
  CHECK(guessed(rows, "decode.csv.target") == "\"3\"");
  CHECK(guessed(rows, "decode.csv.classes") == R"(["fault", "ok"])");
  rows.insert(rows.begin(), "temp;site;rms;fault");
  CHECK(guessed(rows, "decode.csv.columns") == R"(["temp", "site", "rms", "fault"])");
  CHECK(guessed(rows, "decode.csv.features") == R"(["temp", "rms"])");
  CHECK(guessed(rows, "decode.csv.target") == "\"fault\"");
  Records numbers;
  for (int i = 0; i < 30; ++i)
    numbers.push_back(std::to_string(i) + ".5," + std::to_string(i * i) + ".25," + std::to_string(7 * i) +
                      ".125");
  CHECK(guessed(numbers, "decode.csv.target") == "\"2\"");
  CHECK(guessed(numbers, "train.loss") == "\"mse\"");
}

TEST_CASE("Guess: bytes of one size: pictures, floats behind a label, or nothing") {
  Records pictures;
  for (int i = 0; i < 10; ++i)
    pictures.push_back(std::string(1, static_cast<char>(i)) + std::string(784, '\x80'));
  CHECK(guessed(pictures, "decode.raw.shape") == "[1, 28, 28]");
  CHECK(guessed(pictures, "decode.raw.label") == "\"u8\"");
  CHECK(guessed(pictures, "model.classes") == "10");
  Records floats;
  for (int i = 0; i < 10; ++i)
    floats.push_back(le<float>({static_cast<float>(i % 3), 0.5F + static_cast<float>(i), 1e3F}));
  CHECK(guessed(floats, "decode.raw.label") == "\"f32\"");
  CHECK(guessed(floats, "decode.raw.shape") == "[2]");
  CHECK(guessed(floats, "model.classes") == "3");
  Records whole;
  for (int i = 0; i < 10; ++i) whole.push_back(le<std::int32_t>({i % 2}) + le<float>({1.5F, 2, 3}));
  CHECK(guessed(whole, "decode.raw.label") == "\"i32\"");
  CHECK(guessed(whole, "model.classes") == "2");
}

TEST_CASE("Guess: any bytes are guessed at without harm") {
  Rng rng(7);
  const std::string seeds[] = {machines(1, {"\"ok\""}).front(), "1,2,3\n4,5,6", "[[[[[[",
                               "{\"a\":{\"b\":[1,[2]]}}"};
  for (int i = 0; i < 3000; ++i) {
    Records records;
    for (int r = 0; r < 3; ++r) {
      std::string text = seeds[rng.below(4)];
      for (int n = 0; n < 3; ++n) text[rng.below(text.size())] = static_cast<char>(rng.below(256));
      records.push_back(text.substr(0, rng.below(text.size() + 1)));
    }
    const auto guess = guess_rows(records, "");
    CHECK((guess || !guess.error().message.empty()));
  }
}

TEST_CASE("Config from records: the file is valid, trains on what it saw, and says how it was made") {
  const auto records = machines(60, {"\"ok\"", "\"ok\"", "\"fault\""});
  const auto made = config_from_records(brokers_of(), "press.line_7", "press.line_7-1", "", 2, records);
  REQUIRE_MESSAGE(made, made.error().message);
  const auto loaded = load_text(made.value().text);
  for (const auto& problem : loaded.problems) MESSAGE(problem.text());
  CHECK(loaded.problems.empty());
  const auto& c = loaded.config;
  CHECK(c.job.name == "press.line_7-1");
  CHECK(c.job.devices == 1);
  CHECK(c.source.topics == std::vector<std::string>{"press.line_7"});
  CHECK(c.source.partitions == std::vector<int>{0, 1});
  CHECK(c.source.kafka_properties.at(0).second == "h:1");
  CHECK(c.decode.classes == std::vector<std::string>{"fault", "ok"});
  CHECK(c.model.classes == 2);
  CHECK(c.train.optimizer == "adam");
  CHECK(c.batch.max == 16);
  CHECK(c.settings.flag("model.mlp.skip") == (c.model.name == "mlp"));
  CHECK(c.decode.normalize);  // values from the first rows would fix the scale of all later ones
  CHECK(contains(made.value().text, "baseline (majority class): ok, 66.7 % of 60 labels"));
  CHECK_FALSE(contains(made.value().text, "model.classes"));
}

TEST_CASE("Config from records: the name of a field writes no line of the file") {
  Records records;
  for (int i = 0; i < 30; ++i)
    records.push_back(R"({"x":)" + std::to_string(i % 9) +
                      R"(.5,"\ncheckpoint = { quorum = 1 }\n#.label":")" + (i % 2 ? "a" : "b") + R"("})");
  const auto made = config_from_records(brokers_of(), "rows", "rows-1", "", 1, records);
  REQUIRE_MESSAGE(made, made.error().message);
  CHECK(contains(made.value().text, R"(# to predict: '\ncheckpoint = { quorum = 1 }\n#)"));
  CHECK_FALSE(contains(made.value().text, "\ncheckpoint = { quorum"));
  CHECK(load_text(made.value().text).config.checkpoint.quorum == 2);
}

TEST_CASE("Config from records: what was said wins over what is guessed, and no password is written") {
  const auto records = machines(30, {"0", "1"});
  const auto made =
      config_from_records(brokers_of({"model.name=linear", "train.optimizer.lr=0.02",
                                      "source.kafka.properties.sasl.password=${file:/etc/hostname}"}),
                          "t", "t-1", "", 1, records);
  REQUIRE_MESSAGE(made, made.error().message);
  CHECK(contains(made.value().text, "[model]\nname = \"linear\"\nclasses = 2\n"));
  CHECK(contains(made.value().text, "optimizer.lr = 0.02\n"));
  std::ifstream file("/etc/hostname");
  std::string secret;
  std::getline(file, secret);
  REQUIRE_FALSE(secret.empty());
  CHECK_FALSE(contains(made.value().text, "password = \"" + secret));
}

TEST_CASE("Config from topic: its job is one that is not there yet, on the broker or in /tmp") {
  const auto none = [](const std::string&) { return false; };
  CHECK(free_job_name("readings", {{}, none, none}) == "readings-1");
  CHECK(free_job_name("readings", {{"readings", "readings-1", "readings-2"}, none, none}) == "readings-3");
  CHECK(free_job_name("readings", {{}, none, [](const std::string& job) { return job == "readings-1"; }}) ==
        "readings-2");
  CHECK(free_job_name("a b/c", {{}, none, none}) == "a-b-c-1");
  CHECK(free_job_name(std::string(249, 'x'), {{}, none, none}).size() <= 128);
}

TEST_CASE("Config from topic: a job that waits for its first device is the one that is meant") {
  const auto yes = [](const std::string&) { return true; };
  const auto none = [](const std::string&) { return false; };
  CHECK(free_job_name("readings", {{"other", "readings"}, yes, none}) == "readings");
  CHECK(free_job_name("readings", {{"fans"}, yes, none}) == "fans");
  CHECK(free_job_name("readings", {{"fans", "pumps"}, yes, none}) == "readings-1");
  CHECK(free_job_name("readings", {{"readings"}, none, none}) == "readings-1");
  CHECK(free_job_name("readings", {{"readings"}, yes, [](const std::string& job) {
                                     return job == "readings";
                                   }}) == "readings-1");
}

TEST_CASE("Guess: a field that some rows lack is kept, and how many lack it is said") {
  Records records;
  for (int i = 0; i < 40; ++i)
    records.push_back(R"({"temp":)" + std::to_string(20 + i % 7) + ".5" +
                      (i % 4 == 0   ? ""
                       : i % 4 == 1 ? R"(,"hum":null)"
                                    : R"(,"hum":)" + std::to_string(i)) +
                      (i % 3 ? "" : R"(,"rare":1)") + R"(,"on":)" + (i % 2 ? "true" : "false") +
                      R"(,"text":"1.5","label":")" + (i % 2 ? "a" : "b") + "\"}");
  CHECK(guessed(records, "decode.json.features") == R"(["temp", "on", "text", "hum"])");
  const auto notes = guess_rows(records, "").value().notes;
  CHECK(std::count(notes.begin(), notes.end(),
                   "hum is missing in 20 of 40 rows (50 %): the key fill sets the replacement value "
                   "(default: the feature's mean)") == 1);
  CHECK(std::count(notes.begin(), notes.end(),
                   "omitted, since they are not numeric or occur in less than half of the rows: rare") == 1);
  const auto made = config_from_records(brokers_of(), "t", "t-1", "", 1, records);
  REQUIRE_MESSAGE(made, made.error().message);
  CHECK(contains(made.value().text, "# hum is missing in 20 of 40 rows"));
  const auto config = load_text(made.value().text).config;
  CHECK(config.decode.normalize);  // filling with a mean requires normalization
  CHECK(config.decode.fill == "mean");
  Records lines;
  for (int i = 0; i < 30; ++i)
    lines.push_back(std::to_string(i) + ".5," + (i % 3 ? "7.5" : "") + "," + (i % 2 ? "true" : "false") +
                    "," + (i % 2 ? "ok" : "no"));
  CHECK(guessed(lines, "decode.csv.features", "3") == R"(["0", "1", "2"])");
}

TEST_CASE("Guess: numbers that look like none are suggested as codes, and nothing else is") {
  const auto with = [](const std::string& odd, int times) {
    Records records;
    for (int i = 0; i < 40; ++i)
      records.push_back(R"({"temp":)" + (i < times ? odd : std::to_string(20 + i % 7)) + R"(.0,"label":")" +
                        (i % 2 ? "a" : "b") + "\"}");
    return records;
  };
  const auto codes = [](const Records& records) {
    const auto guess = guess_rows(records, "").value();
    return std::vector<double>(guess.codes.begin(), guess.codes.end());
  };
  CHECK(codes(with("-999", 5)) == std::vector<double>{-999});
  CHECK(codes(with("65535", 2)) == std::vector<double>{65535});
  CHECK(codes(with("-999", 1)).empty());   // one occurrence is not enough
  CHECK(codes(with("-999", 30)).empty());  // too many for a code
  CHECK(codes(with("-123", 5)).empty());   // an outlier
  Records counter;
  for (int i = 0; i < 40; ++i)
    counter.push_back(R"({"n":)" + std::to_string(990 + i / 2) + R"(,"label":")" + (i % 2 ? "a" : "b") +
                      "\"}");
  CHECK(codes(counter).empty());  // 999 among its neighbours
  for (int i = 0; i < 40; ++i)
    counter[static_cast<std::size_t>(i)] =
        R"({"n":)" + std::to_string(i < 5 ? 999 : 950 + i) + R"(,"label":")" + (i % 2 ? "a" : "b") + "\"}";
  CHECK(codes(counter).empty());  // slightly above all others
  const auto made = config_from_records(brokers_of(), "t", "t-1", "", 1, with("-999", 5));
  REQUIRE_MESSAGE(made, made.error().message);
  CHECK(contains(made.value().text,
                 "\n# if these codes stand for missing values: decode.json.missing = [-999]\n"));
  CHECK(load_text(made.value().text).config.decode.missing.empty());
}

TEST_CASE("Guess: JSON arrays are never columns; frames and byte-order marks are looked behind") {
  CHECK(contains(guessed({"[1,2,3]", "[4,5,6]", " [7,8,9]"}, ""), "records are JSON arrays without objects"));
  CHECK(contains(guessed({"\xEF\xBB\xBF[1,2,3]"}, ""), "records are JSON arrays without objects"));
  const std::string frame("\0\0\0\0\x2a", 5);
  Records framed = machines(30, {"\"ok\"", "\"fault\""});
  for (auto& record : framed) record.insert(0, frame);
  CHECK(guessed(framed, "decode.json.classes") == R"(["fault", "ok"])");
  CHECK(guessed({frame + "\x02\x04\x06", frame + "\x02\x04\x07"}, "") ==
        "the topic's content looks like Avro or Protobuf in Confluent's wire format, schema 42: rows must be "
        "JSON, CSV or raw binary numbers");
}

TEST_CASE("Config from records: numbers that 32 bits cannot hold get a shift, and a word") {
  Records records;
  for (int i = 0; i < 60; ++i)
    records.push_back(R"({"temp":)" + std::to_string(20 + i % 7) + R"(,"energy":)" +
                      std::to_string(100'000'000 + i * 7 % 40) + R"(,"label":")" + (i % 2 ? "a" : "b") +
                      "\"}");
  const auto made = config_from_records(brokers_of(), "t", "t-1", "", 1, records);
  REQUIRE_MESSAGE(made, made.error().message);
  const auto& text = made.value().text;
  CAPTURE(text);
  CHECK(contains(text, "# feature \"energy\" ranges from 100000000 to 100000039: 32 bits lose "));
  CHECK(contains(text, "shift = [0"));
  const auto config = load_text(text).config;
  CHECK(config.decode.normalize);
  CHECK(config.decode.shift == std::vector<double>{0, -100'000'020});
}
