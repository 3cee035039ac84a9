// Passwords in a configuration: where they are allowed, and that no output contains them.
#include <doctest/doctest.h>

#include "runtime/config/secrets.h"
#include "tests/support/config_text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

TEST_CASE("Config secrets: never in the effective configuration, always in the properties") {
  Files files;
  const auto secret = files.write("secret", "hunter2\n");
  const auto loaded =
      with_sets({"source.kafka.properties.sasl.password=abc", "source.kafka.properties.ssl.key.pem=abc",
                 "source.kafka.properties.sasl.username=${file:" + secret + "}"});
  REQUIRE(loaded.usable());
  CHECK(loaded.effective.at("source.kafka.properties.sasl.password") == "\"***\"");
  CHECK(loaded.effective.at("source.kafka.properties.ssl.key.pem") == "\"***\"");
  CHECK(loaded.effective.at("source.kafka.properties.sasl.username") == "\"${file:" + secret + "}\"");
  CHECK(loaded.effective.at("source.kafka.properties.bootstrap.servers") == "\"h:1\"");
  CHECK(loaded.config.source.kafka_properties[1] ==
        std::pair<std::string, std::string>{"sasl.password", "abc"});
  CHECK(loaded.config.source.kafka_properties[2] ==
        std::pair<std::string, std::string>{"sasl.username", "hunter2"});
}

TEST_CASE("Config secrets: masked in what others say of them, whole or cut off") {
  const std::vector<Secret> secrets{{"hunter2"}, {"hunter2-long"}, {"abc"}, {""}};
  CHECK(masked("\"hunter2-long\" and hunter2, abc", secrets) == "\"***\" and ***, abc");
  CHECK(masked("Invalid value \"hunt", secrets) == "Invalid value \"***");
  CHECK(masked("Invalid value \"hun", secrets) == "Invalid value \"hun");
  CHECK(masked("nothing of it", secrets) == "nothing of it");
}

TEST_CASE("Config secrets: a password in the file is warned of, one from elsewhere is not") {
  Files files;
  const auto elsewhere = files.write("password", "hunter2\n");
  const auto warnings = [&](const std::string& property) {
    const auto file = files.write("device.toml",
                                  "version = 1\n[job]\nname = \"t\"\n[source]\ntopics = [\"t\"]\n"
                                  "[source.kafka.properties]\n\"bootstrap.servers\" = \"h:1\"\n" +
                                      property);
    Lines all;
    for (const auto& problem : load_config(input_of(file)).problems) all.push_back(problem.text());
    return all;
  };
  const auto plain = warnings("\"sasl.password\" = \"hunter2\"");
  REQUIRE(plain.size() == 1);
  CHECK(plain[0].find(
            ":8:1: warning: source.kafka.properties.sasl.password is in the configuration in plain text") !=
        std::string::npos);
  CHECK(plain[0].find("hunter2") == std::string::npos);
  CHECK(warnings("\"sasl.password\" = \"${file:" + elsewhere + "}\"").empty());
  CHECK(warnings("\"ssl.key.location\" = \"/etc/key.pem\"").empty());
}

TEST_CASE("Config secrets: a password that was typed into the command line is warned of") {
  const std::string key = "source.kafka.properties.sasl.password";
  const auto typed = texts(with_sets({key + "=hunter2"}));
  REQUIRE(typed.size() == 1);
  CHECK(typed[0].starts_with("--set " + key + ": warning: " + key +
                             " is on the command line, where every process on this machine can read it"));
  CHECK(typed[0].find("hunter2") == std::string::npos);
  CHECK(texts(with_sets({key + "=${SITE}"})).empty());
  CHECK(texts(with_sets({"source.kafka.properties.ssl.key.location=/etc/key.pem"})).empty());
}

TEST_CASE("Config secrets: what ${...} stands for is shown as it was written, whatever the key") {
  Files files;
  const auto file = files.write("secret", "hunter2\n");
  const std::string prefix = "source.kafka.properties.";
  const auto shown = [&](const std::string& key, const std::string& value) {
    return with_sets({key + "=" + value}).effective.at(key);
  };
  for (const std::string reference : {"${SITE}", "${SITE}-x", "/etc/${SITE}.pem"})
    for (const std::string key : {"sasl.pasword", "client.id", "ssl.ca.location"})
      if (key != "sasl.pasword" || reference == "${SITE}")
        CHECK(shown(prefix + key, reference) == "\"" + reference + "\"");
  CHECK(shown(prefix + "fetch.wait.max.ms", "${ROWS}") == "\"${ROWS}\"");
  CHECK(shown("batch.rows", "${ROWS}") == "\"${ROWS}\"");
  CHECK(shown("device.id", "${file:" + file + "}") == "\"${file:" + file + "}\"");
  CHECK(shown("source.topics", "[\"a\", \"${SITE}\"]") == "[\"a\", \"${SITE}\"]");
  // Text written instead of a secret may contain one, or a part of it.
  CHECK(shown(prefix + "sasl.pasword", "typed") == "\"***\"");
  CHECK(shown(prefix + "sasl.password", "${NOPE:-hunter2}") == "\"***\"");
  CHECK(shown(prefix + "sasl.password", "hunter${ROWS}") == "\"***\"");
  CHECK(shown(prefix + "sasl.password", "${SITE}") == "\"${SITE}\"");
  // Common values of settings occur in many messages: they are not masked.
  CHECK(with_sets({prefix + "compression.codec=${SITE}"}).secrets.empty());
}

TEST_CASE("Config secrets: an error of any key shows what it refuses as it was written") {
  Files files;
  const auto file = files.write("secret", "hunter2\n");
  const auto refused = [&](const std::string& key, const std::string& value) {
    const auto all = texts(with_sets({key + "=" + value}));
    REQUIRE_MESSAGE(!all.empty(), key);
    for (const auto& line : all) CHECK_MESSAGE(line.find("hunter2") == std::string::npos, line);
    return all.front();
  };
  const std::string reference = "${file:" + file + "}";
  CHECK(refused("job.seed", reference) ==
        "--set job.seed: error: 'job.seed' must be an integer, not the value that \"" + reference +
            "\" resolves to");
  for (const std::string key : {"batch.tick", "buffer.rows", "train.loss", "train.optimizer.lr", "model.name",
                                "decode.format", "source.start", "sync.collective", "job.devices",
                                "http.listen", "decode.raw.shape", "source.partitions"})
    CHECK_MESSAGE(refused(key, reference).find(reference) != std::string::npos, key);
  CHECK(refused("source.topics", "[\"t\", \"a b:" + reference + "\"]").find(reference) != std::string::npos);
  const auto number = files.write("number", "123456789\n");
  const auto bounds = texts(with_sets({"batch.rows=${file:" + number + "}"}));
  REQUIRE(bounds.size() == 1);
  CHECK(bounds[0].find("'batch.rows' is ${file:" + number + "}, must be at most") != std::string::npos);
  // A key in a file of several lines, as quoted by others.
  const std::vector<Secret> pem{{"-----BEGIN\nabc", "${file:/key}"}};
  CHECK(masked("bad \"-----BEGIN\\nabc\"", pem) == "bad \"${file:/key}\"");
}

TEST_CASE("Config secrets: devices compare what a reference stands for, not how it was written") {
  Files files;
  const auto one = "${file:" + files.write("one", "0.05\n") + "}";
  const auto same = "${file:" + files.write("same", "0.05\n") + "}";
  const auto other = "${file:" + files.write("other", "0.07\n") + "}";
  const auto lr = [](const std::string& value) {
    return group_keys(with_sets({"train.optimizer.lr=" + value})).at("train.optimizer.lr");
  };
  CHECK(lr("${NOPE:-0.05}") == lr("0.05"));
  CHECK(lr(one) == lr(same));
  CHECK(lr(one) != lr(other));
  CHECK(lr(one).find("0.05") == std::string::npos);
  // Also inside a list. For the quorum every member counts, and it is not a secret.
  const auto word = "${file:" + files.write("word", "hunter2\n") + "}";
  const auto lists = group_keys(with_sets(
      {"decode.format=json", "decode.json.target='y'", "decode.json.features=['a', '" + word + "']"}));
  CHECK(lists.at("decode.json.features").find("hunter2") == std::string::npos);
  const auto three = "${file:" + files.write("three", "3\n") + "}";
  CHECK(group_keys(with_sets({"checkpoint.quorum=" + three})).at("checkpoint.quorum") == "3");
}
