// A policy with a memory of its own, which a policy must not have: the race is inside SyncSession::poll of
// two train threads.
#include <string_view>

#include "tests/canary/planted_race.h"

using namespace rivulet;

namespace {

long planted_count = 0;

void planted_propose(const sync::FactsTable& table, const sync::policy::PolicyConfig& config,
                     sync::policy::PolicyState& state, sync::policy::RoundPlan& plan) {
  ++planted_count;
  sync::policy::builtin_policies().front()->propose(table, config, state, plan);
}

const sync::policy::PolicyEntry planted{"planted", "counts without a lock", planted_propose};

}  // namespace

int main(int argc, char** argv) {
  const sync::policy::PolicyEntry* policies[] = {&planted};
  testing::ThreadedParts parts;
  parts.catalog.sync.policies = policies;
  return testing::run_planted(std::move(parts), argc > 1 && std::string_view(argv[1]) == "gloo", "planted");
}
