#include "runtime/config/check_training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

#include "devices/class_balance.h"
#include "devices/optimizer.h"
#include "devices/trainer.h"

namespace rivulet::runtime {
namespace {

void check_class_weights(const Config& config, const Complain& wrong, const Complain& warn) {
  const auto& weights = config.train.class_weights;
  if (weights.empty() && !config.train.balanced) return;
  const std::string key = "train.class_weights";
  const std::size_t classes =
      config.decode.classes.empty() ? config.model.classes : config.decode.classes.size();
  if (config.train.loss != "cross_entropy")
    warn({key}, fmt::format("'{}' has no effect with train.loss = '{}'", key, config.train.loss));
  else if (config.train.balanced && classes > devices::counted_classes_max)
    wrong({key}, fmt::format("'{}' is 'auto', which supports at most {} classes; the model has {}", key,
                             devices::counted_classes_max, classes));
  else if (!weights.empty() && weights.size() != classes)
    wrong({key}, fmt::format("'{}' has {} numbers, must have one for each of the {} classes", key,
                             weights.size(), classes));
  else if (!weights.empty() && std::ranges::all_of(weights, [](double w) { return w == 0; }))
    wrong({key}, fmt::format("'{}' must have a number above 0: otherwise every row has weight 0", key));
}

/// A list with a single number is equivalent to that number, as for all keys.
void check_clipping(const SettingsByKey& written, const Complain& wrong) {
  const std::string key = "train.clip_grad_norm";
  const auto found = written.find(key);
  if (found == written.end()) return;
  const auto* list = std::get_if<Value::List>(&found->second.value.data);
  if (list != nullptr && list->size() > 1)
    wrong({key}, fmt::format("'{}' is {}, must be auto or one number", key, shown(found->second.value)));
}

bool is_linear(std::string_view model) {
  return std::ranges::any_of(devices::builtin_models(),
                             [&](const auto* entry) { return entry->name == model && entry->linear; });
}
bool steps_with_gradient(std::string_view optimizer) {
  return std::ranges::any_of(devices::builtin_optimizers(), [&](const auto* entry) {
    return entry->name == optimizer && entry->delta_per_gradient != nullptr;
  });
}

/// Returns the first optimizer with per-parameter rates.
std::string_view own_rates() {
  for (const auto* entry : devices::builtin_optimizers())
    if (entry->delta_per_gradient == nullptr && !entry->arrays.empty()) return entry->name;
  return "";
}

/// With equal features, the curvature of the squared error equals the number of features. Gradient descent
/// diverges above a rate of 2 / features.
void check_learning_rate(const Config& config, const Complain& warn) {
  const Config::Train& train = config.train;
  if (train.loss != "mse" || !is_linear(config.model.name) || !steps_with_gradient(train.optimizer)) return;
  const auto& shape = config.decode.shape;
  const double features = config.decode.format == "raw"
                              ? std::accumulate(shape.begin(), shape.end(), 1.0, std::multiplies<>())
                              : static_cast<double>(config.decode.features.size());
  if (train.lr * features <= 2) return;
  warn({"train.optimizer.lr", "train.loss"},
       fmt::format("'train.optimizer.lr' is {}: a linear model of {} similar features diverges above "
                   "{:.2g}; lower it, or set 'train.optimizer.name' = '{}'",
                   train.lr, features, 2 / features, own_rates()));
}

}  // namespace

void check_training(const Config& config, const SettingsByKey& written, const Complain& wrong,
                    const Complain& warn) {
  check_class_weights(config, wrong, warn);
  check_clipping(written, wrong);
  check_learning_rate(config, warn);
}

}  // namespace rivulet::runtime
