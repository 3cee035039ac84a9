#include <array>
#include <string>
#include <string_view>

#include "sync/policy/coherence.h"
#include "sync/published/collective_cost.h"

namespace rivulet::sync::policy {
namespace {

// AR-Topk leaves a device's own large numbers for up to N rounds where they are: its residual grows about N
// times as large. From a limit on, all of them gather until it is half of that.

constexpr std::string_view name = "shared_index";  // of the collective, too
enum Place : std::size_t { kept_at, memory_size };
constexpr std::array keys{kept_key};
constexpr std::array figures{
    Figure{"kept", "what a device has kept, in contributions; below 0 while that is too much", kept_at},
};

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  KeptLimit limit(setting(inputs.config, kept_key.name).number, memory[kept_at]);
  limit.add(kept_ratio(inputs));
  const std::string_view gather = gathers_all().name;
  use_collective(limit.exceeded() ? gather : name, plan);
  if (limit.exceeded()) plan.why = std::string(gather) + ", for devices have kept too much";
  keep_finite(memory);
}

}  // namespace

extern const ControllerEntry collective_shared_index;
const ControllerEntry collective_shared_index{
    .role = Role::collective,
    .name = name,
    .help = "the largest numbers of one device say which ones all sum (AR-Topk), unless too much is kept",
    .propose = &propose,
    .keys = keys,
    .fact_fields = kept_fields,
    .memory = memory_size,
    .figures = figures};

}  // namespace rivulet::sync::policy
