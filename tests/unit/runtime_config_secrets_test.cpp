// Passwords in a configuration: where they may stand, and that nothing says them.
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
  CHECK(loaded.effective.at("source.kafka.properties.sasl.username") == "\"***\"");
  CHECK(loaded.effective.at("source.kafka.properties.bootstrap.servers") == "\"h:1\"");
  CHECK(loaded.config.source.kafka_properties[1] ==
        std::pair<std::string, std::string>{"sasl.password", "abc"});
  CHECK(loaded.config.source.kafka_properties[2] ==
        std::pair<std::string, std::string>{"sasl.username", "hunter2"});
}

TEST_CASE("Config secrets: masked in what others say of them, whole or cut off") {
  const std::vector<std::string> secrets{"hunter2", "hunter2-long", "abc", ""};
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
  CHECK(
      plain[0].find(
          ":8:1: warning: source.kafka.properties.sasl.password stands in the configuration in the clear") !=
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
                             " stands on the command line, which every process here can read"));
  CHECK(typed[0].find("hunter2") == std::string::npos);
  CHECK(texts(with_sets({key + "=${SITE}"})).empty());
  CHECK(texts(with_sets({"source.kafka.properties.ssl.key.location=/etc/key.pem"})).empty());
}

TEST_CASE("Config secrets: what a variable put into a property of no usual name is not shown") {
  const std::string prefix = "source.kafka.properties.";
  const auto shown = [&](const std::string& property, const std::string& value) {
    return with_sets({prefix + property + "=" + value}).effective.at(prefix + property);
  };
  CHECK(shown("sasl.pasword", "${SITE}") == "\"***\"");
  CHECK(shown("sasl.pasword", "${SITE}-x") == "\"***\"");
  CHECK(shown("sasl.pasword", "typed") == "\"typed\"");  // it stands in the file, and in no other place
  // Words of settings are in many messages: these are not searched for it.
  CHECK(with_sets({prefix + "compression.codec=${SITE}"}).secrets.empty());
  CHECK(shown("client.id", "${SITE}") == "\"plant\"");
  CHECK(shown("ssl.ca.location", "/etc/${SITE}.pem") == "\"/etc/plant.pem\"");
  CHECK(shown("fetch.wait.max.ms", "${ROWS}") == "\"77\"");
  CHECK(shown("enable.ssl.certificate.verification", "${NOPE:-false}") == "\"false\"");
}
