#include <doctest/doctest.h>

#include "runtime/config/config.h"
#include "runtime/node/node_config.h"
#include "tests/support/config_text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

/// For rows with text labels; the last lines may belong to [model].
std::string text_of(const std::string& classes, const std::string& more = "") {
  return config_base +
         "[decode]\nformat = \"json\"\njson = { features = [\"x\"], target = \"y\", classes = " + classes +
         " }\n" + more;
}

}  // namespace

TEST_CASE("Config: a list of labels says how many classes there are, and whose count it is") {
  const auto loaded = LoadedText(text_of(R"(["ok", "fault", "true"])")).config;
  CHECK(texts(loaded) == Lines{});
  CHECK(loaded.config.model.classes == 3);
  CHECK(loaded.effective.at("model.classes") == "3");
  CHECK(loaded.origin.at("model.classes") == "decode.json.classes");
  const auto decode = decode_config(loaded.config);
  CHECK(decode.class_names == std::vector<std::string>{"ok", "fault", "true"});
  CHECK(decode.classes == 3);
}

TEST_CASE(
    "Config: devices with the same labels are a group, however they are written; in another order not") {
  const auto hash = [](const char* classes, const char* more = "") {
    return group_hash(group_keys(LoadedText(text_of(classes, more)).config));
  };
  CHECK(hash(R"(["ok", "fault"])") == hash(R"(["ok", "fault"])", "[model]\nclasses = 2\n"));
  CHECK(hash(R"(["ok", "fault"])") == hash(R"(["ok","fault"])"));
  CHECK(hash(R"(["ok", "fault"])") != hash(R"(["fault", "ok"])"));
}

TEST_CASE("Config: labels and classes that do not fit are refused with both keys") {
  CHECK(problems_of(text_of(R"(["ok", "fault"])", "[model]\nname = \"mlp\"\nclasses = 2\n")) == Lines{});
  CHECK(problems_of(text_of(R"(["ok", "fault"])", "[model]\nclasses = 10\n")) ==
        Lines{"device.toml:12:11: error: 'model.classes' is 10, but 'decode.json.classes' names 2: make both "
              "equal, or omit 'model.classes'"});
  CHECK(problems_of(text_of(R"(["ok"])")) ==
        Lines{"device.toml:10:52: error: 'decode.json.classes' names one class, must name at least 2"});
  CHECK(problems_of(text_of(R"(["ok", "no", "ok"])")) ==
        Lines{"device.toml:10:52: error: 'decode.json.classes' names 'ok' twice"});
  CHECK(
      problems_of(text_of("[true, false]")) ==
      Lines{"device.toml:10:52: error: 'decode.json.classes' must be a list of strings, not the list [true, "
            "false]"});
  CHECK(problems_of(text_of(R"(["ok", "no"])", "[train]\nloss = \"mse\"\n")) ==
        Lines{"device.toml:10:52: warning: 'decode.json.classes' has no effect with train.loss = 'mse'"});
}

TEST_CASE(
    "Config: weights that no float holds, and two lengths of a gradient, are refused with their values") {
  const auto of_train = [](const std::string& line) {
    return problems_of(text_of(R"(["ok", "fault"])", ("[train]\n" + line + "\n").c_str()));
  };
  CHECK(of_train("class_weights = [1e39, 1]") == Lines{"device.toml:12:17: error: 'train.class_weights' has "
                                                       "an item that is 1e+39, must be at most 1000000"});
  CHECK(of_train("clip_grad_norm = [1, 2]") ==
        Lines{"device.toml:12:18: error: 'train.clip_grad_norm' is [1, 2], must be auto or one number"});
  CHECK(of_train("clip_grad_norm = [1]") == Lines{});
  CHECK(of_train("class_weights = [1e6, 0]") == Lines{});
}

TEST_CASE("Config: each format has its own list of labels") {
  const auto loaded = with_sets({"decode.format=csv", "decode.csv.features=['0']", "decode.csv.target='1'",
                                 "decode.csv.classes=['a','b']", "decode.json.classes=['c','d','e']"});
  CHECK(texts(loaded) == Lines{});
  CHECK(loaded.config.decode.classes == std::vector<std::string>{"a", "b"});
  CHECK(loaded.config.model.classes == 2);
  CHECK(with_sets({"decode.json.classes=['c','d','e']"}).config.model.classes == 10);  // rows are raw
}

TEST_CASE("Config: a learning rate with which a linear regression of many features diverges is a warning") {
  const auto of = [](int features, const std::string& more) {
    std::string names = "\"x0\"";
    for (int i = 1; i < features; ++i) names += ", \"x" + std::to_string(i) + "\"";
    return problems_of(config_base + "[decode]\nformat = \"json\"\njson = { features = [" + names +
                       "], target = \"y\" }\n[model]\nname = \"linear\"\n[train]\nloss = \"mse\"\n" + more);
  };
  CHECK(of(40, "") == Lines{});
  const Lines told = of(300, "");
  REQUIRE(told.size() == 1);
  CHECK(
      told[0].ends_with(": warning: 'train.optimizer.lr' is 0.05: a linear model of 300 similar features "
                        "diverges above 0.0067; lower it, or set 'train.optimizer.name' = 'adam'"));
  CHECK(of(300, "[train.optimizer]\nlr = 0.006\n") == Lines{});
  CHECK(of(300, "[train.optimizer]\nname = \"adam\"\n") == Lines{});
}
