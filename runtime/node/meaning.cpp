#include "runtime/node/meaning.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "core/digest.h"
#include "runtime/node/node_config.h"

namespace rivulet::runtime {
namespace {

using Texts = std::vector<std::string>;

constexpr std::size_t columns_named_max = 100'000;
constexpr std::size_t list_bytes_max = std::size_t{1} << 19U;  // seven lists fit into the section of an image

Texts bounded(Texts list) {
  Hasher hasher;
  std::size_t bytes = 0;
  for (const auto& text : list) {
    bytes += text.size() + sizeof(std::uint32_t);
    hasher.add(std::as_bytes(std::span(text)));
    hasher.add_value('\n');
  }
  if (bytes <= list_bytes_max) return list;
  return {fmt::format("{} of them with digest {}", list.size(), hasher.finish().hex())};
}

template <class Numbers>
Texts texts_of(const Numbers& numbers) {
  Texts all;
  all.reserve(numbers.size());
  for (const auto number : numbers) all.push_back(fmt::format("{}", number));
  return all;
}

/// Reduces equal per-feature factors to a single one.
Texts factors(std::span<const double> each) {
  const bool alike = std::equal(each.begin() + (each.empty() ? 0 : 1), each.end(), each.begin());
  return texts_of(alike ? each.first(std::min<std::size_t>(1, each.size())) : each);
}

}  // namespace

std::vector<std::string> feature_names(const Config& config, const stream::Decoder& decoder) {
  const std::size_t columns = decoder.shape().columns();
  if (columns > columns_named_max || decoder.feature(0).empty()) return config.decode.features;
  Texts names;
  for (std::size_t i = 0; i < columns; ++i) names.push_back(decoder.feature(i));
  return names;
}

std::vector<std::string> class_labels(const Config& config) {
  return is_classification(config) ? class_names(config) : Texts();
}

Meaning meaning_of(const Config& config, const stream::Decoder& decoder) {
  const auto& d = config.decode;
  Meaning meaning;
  const auto add = [&](const char* what, Texts list) {
    if (!list.empty()) meaning.push_back({what, bounded(std::move(list))});
  };
  add("features", feature_names(config, decoder));
  if (!d.target.empty()) add("target", {d.target});
  add("classes", class_labels(config));
  add("loss", {config.train.loss});
  add("format", {d.format});
  if (d.format == "raw") add("numbers", {config.settings.text("decode.raw.features")});
  add("shape", texts_of(decoder.shape().shape));
  add("scale", d.normalize ? Texts{"auto"} : factors(d.scale));
  // With measured scale, a shift appears only if present: older states have none.
  const bool shifted = std::ranges::any_of(d.shift, [](double by) { return by != 0; });
  if (!d.normalize || shifted) add("shift", factors(d.shift));
  const devices::ModelEntry* model = model_named(config.model.name);
  if (model != nullptr && model->meaning != nullptr)
    for (auto& [what, list] : model->meaning(config.settings)) add(what.c_str(), std::move(list));
  return meaning;
}

}  // namespace rivulet::runtime
