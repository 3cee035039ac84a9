#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

// The group synchronizes after every batch: the default schedule.
void propose(const Inputs&, std::span<double>, RoundPlan&) {}

}  // namespace

extern const ControllerEntry when_every;
const ControllerEntry when_every{Role::when, "every", "gradient averaging after every batch", &propose};

}  // namespace rivulet::sync::policy
