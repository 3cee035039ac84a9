#include <cmath>

#include "sync/policy/learning_rate.h"

namespace rivulet::sync::policy {
namespace {

constexpr std::array own{
    Key{.name = "train.lr_schedule.every_rows",
        .type = KeyType::integer,
        .text = "1000000",
        .help = "with policy step: rows trained by the group between two changes of lr",
        .least = 1,
        .most = 1e15},
    Key{.name = "train.lr_schedule.gamma",
        .text = "0.5",
        .help = "with policy step: factor by which each change multiplies lr",
        .least = 0,
        .most = 1,
        .above = true},
};
constexpr auto keys = learning_rate_keys(own);

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  constexpr double most_changes = 64;
  const double every = setting(inputs.config, own[0].name).number;
  const double times = setting(inputs.config, own[1].name).number;
  const double changes = std::fmin(most_changes, std::floor(rows_trained(inputs.table) / every));
  double schedule = 1;
  for (double i = 0; i < changes; ++i) schedule *= times;
  set_learning_rate(inputs, memory, schedule, plan);
}

}  // namespace

extern const ControllerEntry learning_rate_step;
const ControllerEntry learning_rate_step{
    .role = Role::learning_rate,
    .name = "step",
    .help = "step decay: lr is multiplied by a factor at fixed intervals of rows",
    .propose = &propose,
    .keys = keys,
    .memory = learning_rate_memory,
    .figures = learning_rate_figures,
    .slow = learning_rate_falls};

}  // namespace rivulet::sync::policy
