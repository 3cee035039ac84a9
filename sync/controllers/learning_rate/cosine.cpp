#include <algorithm>

#include "sync/policy/learning_rate.h"

namespace rivulet::sync::policy {
namespace {

// SGDR (Loshchilov and Hutter, 2017) without its restarts.

constexpr std::array own{
    Key{.name = "train.lr_schedule.rows",
        .type = KeyType::integer,
        .text = "1000000",
        .help = "with policy cosine: rows trained by the group until lr reaches its minimum, where it stays",
        .least = 1,
        .most = 1e15},
    Key{.name = "train.lr_schedule.min_ratio",
        .text = "0.01",
        .help = "with policy cosine: minimum learning rate, as a share of lr",
        .least = 0,
        .most = 1},
};
constexpr auto keys = learning_rate_keys(own);

/// cos(pi x) for x from 0 to 1, accurate to 1e-7. Uses only operations that round the same everywhere.
double half_cosine(double x) {
  constexpr double pi = 3.14159265358979323846;
  const double z = pi * (0.5 - x);  // cos(pi x) = sin(z)
  double term = z;
  double sum = z;
  for (int i = 3; i <= 13; i += 2) {
    term *= -z * z / (i * (i - 1));
    sum += term;
  }
  return sum;
}

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  const double rows = setting(inputs.config, own[0].name).number;
  const double least = setting(inputs.config, own[1].name).number;
  const double part = std::min(1.0, rows_trained(inputs.table) / rows);
  set_learning_rate(inputs, memory, least + (1 - least) * (1 + half_cosine(part)) / 2, plan);
}

}  // namespace

extern const ControllerEntry learning_rate_cosine;
const ControllerEntry learning_rate_cosine{.role = Role::learning_rate,
                                           .name = "cosine",
                                           .help = "cosine annealing to a minimum",
                                           .propose = &propose,
                                           .keys = keys,
                                           .memory = learning_rate_memory,
                                           .figures = learning_rate_figures,
                                           .slow = learning_rate_falls};

}  // namespace rivulet::sync::policy
