// A policy with its own state, which is forbidden: the race is inside SyncSession::poll of two train threads.
#include <algorithm>
#include <string_view>

#include "tests/canary/planted_race.h"

using namespace rivulet;

namespace {

long planted_count = 0;

/// Of the default configuration.
const sync::policy::ControllerEntry& usual(sync::policy::Role role) {
  const sync::policy::PolicyConfig config{.learning_rate_policy = "constant"};
  const auto all = sync::policy::controllers_of(config, sync::policy::builtin_controllers()).value();
  return **std::ranges::find(all, role, &sync::policy::ControllerEntry::role);
}

void planted_propose(const sync::policy::Inputs& inputs, std::span<double> memory,
                     sync::policy::RoundPlan& proposal) {
  testing::count_without_lock(planted_count);
  usual(sync::policy::Role::batch).propose(inputs, memory, proposal);
}

const sync::policy::ControllerEntry planted{sync::policy::Role::batch, "planted", "counts without a lock",
                                            planted_propose};

}  // namespace

int main(int argc, char** argv) {
  const sync::policy::ControllerEntry* controllers[] = {&usual(sync::policy::Role::when), &planted,
                                                        &usual(sync::policy::Role::learning_rate)};
  testing::ThreadedParts parts;
  parts.catalog.sync.controllers = controllers;
  return testing::run_planted(std::move(parts), argc > 1 && std::string_view(argv[1]) == "gloo", "planted");
}
