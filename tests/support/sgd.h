#pragma once
#include "devices/optimizer.h"

/// The optimizer sgd, for tests and benchmarks without a configuration.
namespace rivulet::devices {

struct SgdConfig {
  double learning_rate = 0.05;
  double momentum = 0.9;
  double weight_decay = 0.0;
  double clip_grad_norm = 0.0;
};

inline const OptimizerEntry& optimizer_named(std::string_view name) {
  for (const auto* entry : builtin_optimizers())
    if (entry->name == name) return *entry;
  RIVULET_CHECK(false, "no such optimizer");
  return *builtin_optimizers()[0];
}

inline OptimizerConfig config_of(const SgdConfig& sgd) {
  OptimizerConfig config{&optimizer_named("sgd"), sgd.learning_rate, sgd.weight_decay, sgd.clip_grad_norm};
  config.settings.set("train.optimizer.momentum", sgd.momentum);
  return config;
}

inline ApplyReport sgd_step(ModelState& state, const GradientView& agreed, const SgdConfig& sgd = {},
                            double learning_rate_factor = 1.0) {
  static const auto host = make_host_device();
  return apply_gradient(config_of(sgd), state, agreed, learning_rate_factor, 1, *host).value();
}

}  // namespace rivulet::devices
