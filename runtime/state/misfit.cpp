#include "runtime/state/misfit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/printable.h"
#include "devices/columns.h"

namespace rivulet::runtime {
namespace {

using Misfit = std::optional<std::string>;
using Texts = std::vector<std::string>;

constexpr std::size_t listed_max = 32;  // readers do not compare longer lists

std::string listed(const Texts& all, std::size_t differs) {
  if (all.size() > listed_max)
    return differs < all.size()
               ? fmt::format("[{} entries, entry {} is {}]", all.size(), differs, printable(all[differs]))
               : fmt::format("[{} entries]", all.size());
  Texts shown;
  for (const auto& text : all) shown.push_back(printable(text));
  return fmt::format("[{}]", fmt::join(shown, ", "));
}

Texts list_of(const Meaning& meaning, const std::string& what) {
  const auto part = std::ranges::find(meaning, what, &MeaningPart::what);
  return part == meaning.end() ? Texts() : part->list;
}

Misfit other_names(const StateOwner& found, const StateOwner& expected) {
  if (found.model != expected.model)
    return fmt::format("its model is '{}', not '{}'", printable(found.model), expected.model);
  if (!expected.job.empty() && found.job != expected.job)
    return fmt::format("its job is '{}', not '{}'", printable(found.job), expected.job);
  if (expected.topics.empty()) return std::nullopt;
  for (std::size_t i = 0; i < found.topics.size(); ++i)
    if (i >= expected.topics.size() || found.topics[i] != expected.topics[i])
      return fmt::format("its topics are {}, not {}", fmt::join(found.topics, ", "),
                         fmt::join(expected.topics, ", "));
  return std::nullopt;
}

/// Lists all parts that differ, so that the user can fix them all before the next restart.
Misfit other_meaning(const Meaning& found, const Meaning& expected) {
  if (expected.empty() || found == expected) return std::nullopt;
  Texts differences;
  const auto compare = [&](const std::string& what) {
    const Texts theirs = list_of(found, what);
    const Texts ours = list_of(expected, what);
    if (theirs == ours) return;
    const auto [at, end] = std::ranges::mismatch(theirs, ours);
    const auto differs = static_cast<std::size_t>(at - theirs.begin());
    differences.push_back(
        fmt::format("{} {}, here {}", printable(what), listed(theirs, differs), listed(ours, differs)));
  };
  for (const auto& part : expected) compare(part.what);
  for (const auto& part : found)
    if (std::ranges::find(expected, part.what, &MeaningPart::what) == expected.end()) compare(part.what);
  if (differences.empty()) return std::nullopt;
  return fmt::format("its values have a different meaning: {}", fmt::join(differences, "; "));
}

/// Two configuration keys add buffers. The difference in the number of buffers shows which key differs.
Misfit other_keys(std::uint64_t found, const devices::ModelLayout& layout) {
  if (layout.parameter_slots.empty()) return std::nullopt;
  const std::uint64_t here = layout.buffers;
  const std::uint64_t outputs = layout.parameter_slots.back().count;
  const auto& columns = layout.normalized;
  const auto measured = [](std::size_t n) { return n == 0 ? 0 : devices::Measured::numbers(n); };
  const std::uint64_t targets = measured(columns.features + outputs) - measured(columns.features);
  const std::uint64_t classes = 1 + outputs;
  constexpr auto made = "it was written with '{}' = {}, here it is {}";
  if (columns.targets > 0 && found + targets == here)
    return fmt::format(made, "normalize.targets", "false", "true");
  if (columns.targets == 0 && here + targets == found)
    return fmt::format(made, "normalize.targets", "true", "false");
  if (layout.counted_classes > 0 && found + classes == here)
    return fmt::format(made, "train.class_weights", "none or a list", "'auto'");
  if (layout.counted_classes == 0 && here + classes == found)
    return fmt::format(made, "train.class_weights", "'auto'", "none or a list");
  return std::nullopt;
}

Misfit other_shape(const ImageFacts& found, const devices::ModelLayout& layout) {
  const auto name = [](Scalar scalar) { return scalar == Scalar::f32 ? "float32" : "float64"; };
  if (found.scalar == layout.scalar && found.parameters == layout.parameters)
    if (auto other = other_keys(found.buffers, layout)) return other;
  if (found.scalar != layout.scalar || found.parameters != layout.parameters ||
      found.buffers != layout.buffers)
    return fmt::format("it has {} parameters and {} buffer elements of {}, the model has {} and {} of {}",
                       found.parameters, found.buffers, name(found.scalar), layout.parameters, layout.buffers,
                       name(layout.scalar));
  std::vector<std::string> arrays;
  for (const devices::OptimizerArray& array : layout.optimizer_arrays) arrays.push_back(array.name);
  if (found.optimizer_arrays == arrays) return std::nullopt;
  return fmt::format("its optimizer arrays are [{}], here [{}]", fmt::join(found.optimizer_arrays, ", "),
                     fmt::join(arrays, ", "));
}

}  // namespace

std::optional<std::string> misfit_of(const ImageFacts& found, const Expected& expected) {
  if (auto other = other_names(found.owner, expected.owner)) return other;
  if (auto other = other_meaning(found.owner.meaning, expected.owner.meaning)) return other;
  return other_shape(found, expected.layout);
}

}  // namespace rivulet::runtime
