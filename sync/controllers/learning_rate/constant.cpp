#include "sync/policy/learning_rate.h"

namespace rivulet::sync::policy {
namespace {

constexpr auto keys = learning_rate_keys(std::array<Key, 0>{});

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  set_learning_rate(inputs, memory, 1, plan);
}

}  // namespace

extern const ControllerEntry learning_rate_constant;
const ControllerEntry learning_rate_constant{.role = Role::learning_rate,
                                             .name = "constant",
                                             .help = "lr does not change",
                                             .propose = &propose,
                                             .keys = keys,
                                             .memory = learning_rate_memory,
                                             .figures = learning_rate_figures,
                                             .slow = learning_rate_falls};

}  // namespace rivulet::sync::policy
