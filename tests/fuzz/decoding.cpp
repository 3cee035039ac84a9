#include "tests/fuzz/decoding.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/check.h"
#include "tests/fuzz/bytes.h"
#include "tests/support/decode_settings.h"

namespace rivulet::fuzz {
namespace {

using stream::Decoded;

Step step_of(const Decoded& decoded, const std::vector<float>& features, const std::vector<float>& targets) {
  if (decoded.kind == Decoded::Kind::dropped) return {{}, decoded.reason};
  Step step{features, std::nullopt};
  step.row.insert(step.row.end(), targets.begin(), targets.end());
  return step;
}

std::vector<Step> read_once(stream::Decoder& decoder, Input input) {
  std::vector<float> features(decoder.shape().columns());
  std::vector<float> targets(decoder.shape().targets);
  std::vector<Step> steps;
  decoder.begin({.value = input});
  while (true) {
    const Decoded decoded = decoder.next({features, targets});
    if (decoded.kind == Decoded::Kind::end) return steps;
    steps.push_back(step_of(decoded, features, targets));
    RIVULET_CHECK(steps.size() <= input.size() + 1, "a record ends");
    RIVULET_CHECK(!steps.back().dropped || !decoder.detail().empty(), "a drop is explained");
  }
}

}  // namespace

std::unique_ptr<stream::Decoder> make_decoder(const stream::DecodeConfig& config) {
  const auto formats = stream::builtin_decoders();
  const auto entry = std::find_if(formats.begin(), formats.end(),
                                  [&](const auto* format) { return format->name == config.format; });
  RIVULET_CHECK(entry != formats.end(), "the format is compiled in");
  return (*entry)->make(testing::with_decode_defaults(config)).value();
}

bool Step::operator==(const Step& other) const {
  const auto same = [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); };
  return dropped == other.dropped && std::ranges::equal(row, other.row, same);
}

std::vector<Step> read_record(stream::Decoder& decoder, std::uint32_t classes, Input input) {
  return read_record(decoder, Allowed{classes, 0}, input);
}

std::vector<Step> read_record(stream::Decoder& decoder, const Allowed& allowed, Input input) {
  std::vector<Step> steps = read_once(decoder, input);
  for (const Step& step : steps) {
    for (std::size_t i = 0; i < step.row.size(); ++i) {
      const bool missing = i < allowed.columns_missing && std::isnan(step.row[i]);
      RIVULET_CHECK(missing || std::isfinite(step.row[i]), "only finite numbers leave a decoder");
    }
    if (step.dropped || allowed.classes == 0) continue;
    const float label = step.row.back();
    const bool whole = label == std::floor(label);
    RIVULET_CHECK(label >= 0 && label < static_cast<float>(allowed.classes) && whole, "a label is a class");
  }
  RIVULET_CHECK(read_once(decoder, input) == steps, "a record reads the same twice");
  return steps;
}

void check_rows_survive(stream::Decoder& decoder, std::uint32_t classes, const std::vector<Step>& steps,
                        const std::function<std::string(const std::vector<float>&)>& write) {
  std::vector<Step> rows;
  std::string text;
  for (const Step& step : steps) {
    if (step.dropped) continue;
    rows.push_back(step);
    text += write(step.row);
  }
  if (rows.empty()) return;
  const Bytes bytes = bytes_of(text);
  RIVULET_CHECK(read_record(decoder, classes, bytes) == rows, "rows that are written again read the same");
}

std::string text_of_number(float x) {
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%.9g", static_cast<double>(x));
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace rivulet::fuzz
