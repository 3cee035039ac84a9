#include <doctest/doctest.h>

#include "core/digest.h"
#include "runtime/node/meaning.h"
#include "runtime/node/node_config.h"
#include "runtime/state/state_image.h"
#include "tests/support/config_text.h"
#include "tests/support/example_state.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

/// Decoder and model of a sensor job in pieces, so that a test can change one.
struct Job {
  std::string format = "json";
  std::string features = R"(["temp", "rms", "current[0:3]"])";
  std::string target = "state";
  std::string classes = R"(["ok", "worn", "broken"])";
  std::string more;   ///< of the format
  std::string model;  ///< lines of the [model] table

  [[nodiscard]] Config config() const {
    std::string text = config_base + "[decode]\nformat = \"" + format + "\"\n[decode." + format + "]\n";
    if (format != "raw") text += "features = " + features + "\ntarget = \"" + target + "\"\n";
    if (!classes.empty()) text += "classes = " + classes + "\n";
    text += more + "\n[model]\nname = \"mlp\"\n" + model + "\n";
    const auto loaded = LoadedText(text).config;
    for (const auto& problem : loaded.problems) CHECK_MESSAGE(problem.warning, problem.text());
    return loaded.config;
  }
  [[nodiscard]] StateOwner owner() const {
    const Config c = config();
    for (const auto* entry : stream::builtin_decoders())
      if (entry->name == format) {
        const auto decoder = entry->make(decode_config(c));
        REQUIRE_MESSAGE(decoder, decoder.error().message);
        return owner_of(c, *decoder.value());
      }
    return {};
  }
};

/// Error of a job for a state of the same shape from another job; empty: accepted.
std::string refusal(const Job& writer, const Job& reader) {
  const auto device = devices::make_host_device();
  const auto layout = layout_of(20, 3);
  const AgreedState state = example_state(layout, *device);
  const auto image = encode_state(writer.owner(), state, digest_of(state, *device).value());
  StateOwner own = reader.owner();
  const auto read = decode_state(image, {own, layout, *device});
  if (read) return "";
  CHECK(read.error().code == ErrorCode::invalid_config);
  return read.error().message;
}

}  // namespace

TEST_CASE("Meaning: a state whose numbers mean something else is refused with both lists") {
  const Job job;
  CHECK(refusal(job, job) == "");
  CHECK(refusal(job, {.classes = R"(["broken", "worn", "ok"])"}) ==
        "its values have a different meaning: classes [ok, worn, broken], here [broken, worn, ok]");
  CHECK(refusal(job, {.features = R"(["rms", "temp", "current[0:3]"])"}) ==
        "its values have a different meaning: features [temp, rms, current[0], current[1], current[2]], here "
        "[rms, temp, current[0], current[1], current[2]]");
  const struct {
    Job other;
    const char* words;
  } changes[] = {
      {{.features = R"(["temp", "rms", "current[1:4]"])"}, "current[3]]"},
      {{.target = "kind"}, "target [state], here [kind]"},
      {{.classes = "", .model = "classes = 3"}, "classes [ok, worn, broken], here [0, 1, 2]"},
      {{.more = "scale = 1"}, "scale [auto], here [1]; shift [], here [0]"},
      {{.format = "csv", .more = "columns = [\"temp\", \"rms\", \"current[0:3]\", \"state\"]"},
       "format [json], here [csv]"},
      {{.model = "mlp = { activation = \"tanh\" }"}, "activation [relu], here [tanh]"},
      {{.model = "mlp = { skip = true }"}, "skip [], here [true]"},
      {{.model = "mlp = { hidden = [32, 64] }"}, "hidden layers [64, 64], here [32, 64]"},
  };
  for (const auto& [other, words] : changes) {
    CHECK_MESSAGE(contains(refusal(job, other), words), refusal(job, other));
    CHECK(refusal(other, job) != "");
    CHECK(refusal(other, other) == "");
  }
}

TEST_CASE("Meaning: units are part of it, number by number") {
  const Job one{.more = "scale = [1, 2, 3, 4, 5]\nshift = 0.5"};
  CHECK(refusal(one, {.more = "scale = [1, 2, 3, 5, 4]\nshift = 0.5"}) ==
        "its values have a different meaning: scale [1, 2, 3, 4, 5], here [1, 2, 3, 5, 4]");
  CHECK(
      contains(refusal(one, {.more = "scale = [1, 2, 3, 4, 5]\nshift = 0.25"}), "shift [0.5], here [0.25]"));
  const Job raw{.format = "raw", .classes = "", .more = "shape = [5]"};
  CHECK(contains(refusal(raw, {.format = "raw", .classes = "", .more = "shape = [5]\nfeatures = \"i16\""}),
                 "numbers [u8], here [i16]"));
  CHECK(contains(refusal(raw, {.format = "raw", .classes = "", .more = "shape = [5, 1]"}),
                 "shape [5], here [5, 1]"));
}

TEST_CASE("Meaning: a shift before what is measured is part of it, and none is as it always was") {
  const Job job;
  const Job shifted{.more = "shift = [0, 0, -1e8, 0, 0]"};
  CHECK(contains(refusal(job, shifted), "shift [], here [0, 0, -100000000, 0, 0]"));
  CHECK(refusal(shifted, shifted) == "");
  CHECK(refusal(job, {.more = "shift = 0"}) == "");
}

TEST_CASE("Meaning: another way to write the same is the same") {
  const Job job;
  CHECK(refusal(job, {.features = R"(["temp", "rms", "current[0]", "current[1]", "current[2]"])"}) == "");
  CHECK(refusal(job, {.more = "shape = [5]"}) == "");
  CHECK(refusal({.more = "scale = 2"}, {.more = "scale = [2, 2, 2, 2, 2]"}) == "");
  CHECK(refusal({.classes = R"(["0", "1", "2"])"}, {.classes = "", .model = "classes = 3"}) == "");
  const Job csv{.format = "csv", .features = R"(["a", "b"])", .more = R"(columns = ["a", "b", "state"])"};
  Job moved = csv;  // different order in the file
  moved.more = R"(columns = ["state", "b", "a"])";
  CHECK(refusal(csv, moved) == "");
}

TEST_CASE(
    "Meaning: of thousands of features a refusal shows the one that differs, and an image stays small") {
  const auto names = [](int swapped) {
    std::string all;
    for (int i = 0; i < 3000; ++i) {
      const int n = i == swapped ? i + 1 : i == swapped + 1 ? i - 1 : i;
      all += (i == 0 ? "[\"sensor" : ", \"sensor") + std::to_string(n) + "\"";
    }
    return all + "]";
  };
  CHECK(refusal({.features = names(-5)}, {.features = names(1234)}) ==
        "its values have a different meaning: features [3000 entries, entry 1234 is sensor1234], here [3000 "
        "entries, entry 1234 is sensor1235]");
  Job long_names;
  long_names.features = "[\"" + std::string(600'000, 'x') + "\"]";
  const Meaning meaning = long_names.owner().meaning;
  REQUIRE(meaning.front().what == "features");
  CHECK(meaning.front().list.front().starts_with("1 of them with digest "));
}
