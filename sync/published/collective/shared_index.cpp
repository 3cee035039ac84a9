#include <array>
#include <string>
#include <string_view>

#include "sync/policy/coherence.h"
#include "sync/published/collective_cost.h"

namespace rivulet::sync::policy {
namespace {

// AR-Topk ignores a device's own largest values for up to N rounds, so its residual grows about N times as
// large. Above a limit, all devices gather until it has halved.

constexpr std::string_view name = "shared_index";  // also the name of the collective
enum Place : std::size_t { kept_at, memory_size };
constexpr std::array keys{kept_key};
constexpr std::array figures{
    Figure{"kept", "mean ratio of residual norm to gradient norm; negative while above the limit", kept_at},
};

void propose(const Inputs& inputs, std::span<double> memory, RoundPlan& plan) {
  KeptLimit limit(setting(inputs.config, kept_key.name).number, memory[kept_at]);
  limit.add(kept_ratio(inputs));
  const std::string_view gather = gathers_all().name;
  use_collective(limit.exceeded() ? gather : name, plan);
  if (limit.exceeded()) plan.why = std::string(gather) + ", because residuals are too large";
  keep_finite(memory);
}

}  // namespace

extern const ControllerEntry collective_shared_index;
const ControllerEntry collective_shared_index{.role = Role::collective,
                                              .name = name,
                                              .help =
                                                  "sums of elements at positions that one device selects "
                                                  "(AR-Topk); gather while residuals are too large",
                                              .propose = &propose,
                                              .keys = keys,
                                              .fact_fields = kept_fields,
                                              .memory = memory_size,
                                              .figures = figures};

}  // namespace rivulet::sync::policy
