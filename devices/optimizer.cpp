#include "devices/optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "devices/host_memory.h"
#include "devices/numbers.h"

namespace rivulet::devices {
namespace {

/// As clip_grad_norm_: the 1e-6 avoids division by zero.
double clip_scale(double norm, double limit) {
  return limit > 0 ? std::min(1.0, limit / (norm + 1e-6)) : 1.0;
}

/// Multiple of the usual norm, far above the variation of small batches.
constexpr double clip_at = 10;
constexpr double newest = 0.01;  ///< weight in the running norm

/// Running root mean square, so that rare rows with large gradients count.
double usual_norm(double known, double norm) {
  if (known == 0) return norm;
  const double counted = std::min(norm, clip_at * known);
  return std::sqrt(known * known + newest * (counted * counted - known * known));
}

/// Arrays of a state in host-accessible memory: the arrays themselves, or copies to write back.
class HostArrays {
 public:
  explicit HostArrays(Device& device) : device_(device) {}
  Status add(const GradientView& own) {
    own_.push_back(own);
    host_.push_back(own);
    if (own.host_readable()) return ok();
    auto host = device_.to_host(own);  // valid until the next to_host()
    if (!host) return host.error();
    auto memory = allocate_host_memory(own.bytes());
    if (!memory) return memory.error();
    host_.back() = memory.value()->view(own.scalar, own.count);
    copy_host_numbers(host.value(), host_.back());
    copies_.push_back(std::move(memory).value());
    return ok();
  }
  Status write_back() {
    for (std::size_t i = 0; i < own_.size() && !copies_.empty(); ++i)
      if (auto written = device_.from_host(host_[i], own_[i]); !written) return written;
    return ok();
  }
  [[nodiscard]] std::span<const GradientView> views() const { return host_; }

 private:
  Device& device_;
  std::vector<GradientView> own_;
  std::vector<GradientView> host_;
  std::vector<std::unique_ptr<Memory>> copies_;
};

}  // namespace

std::vector<OptimizerArray> arrays_of(const OptimizerEntry& optimizer) {
  std::vector<OptimizerArray> all;
  for (const auto& [name, kind] : optimizer.arrays) all.push_back({std::string(name), kind});
  return all;
}

double longest_gradient(const OptimizerConfig& config, const Statistics& known) {
  return config.clip_usual ? clip_at * known.usual_norm : config.clip_grad_norm;
}

Result<ApplyReport> apply_gradient(const OptimizerConfig& config, ModelState& state,
                                   const GradientView& agreed, double learning_rate_factor,
                                   std::uint64_t step, Device& device) {
  const ModelLayout& layout = state.layout();
  RIVULET_CHECK(agreed.count == layout.contribution(), "the contribution belongs to a different model");
  RIVULET_CHECK(config.entry->arrays.size() == layout.optimizer_arrays.size(),
                "the state belongs to a different optimizer");
  if (config.entry->step == nullptr) return ApplyReport{0, config.learning_rate * learning_rate_factor};
  HostArrays arrays(device);
  for (const GradientView& own : state.arrays())
    if (auto added = arrays.add(own); !added) return added.error();
  const auto all = arrays.views();
  const GradientView gradient = agreed.slice(0, layout.parameters);
  const double norm = std::sqrt(norm2(gradient));
  const double rate = config.learning_rate * learning_rate_factor;
  config.entry->step({.parameters = all.front(),
                      .arrays = all.subspan(1, layout.optimizer_arrays.size()),
                      .gradient = gradient,
                      .scale = clip_scale(norm, longest_gradient(config, state.statistics())),
                      .learning_rate = rate,
                      .weight_decay = config.weight_decay,
                      .step = step,
                      .settings = config.settings});
  if (config.clip_usual) state.statistics().usual_norm = usual_norm(state.statistics().usual_norm, norm);
  copy_host_numbers(agreed.slice(layout.parameters, layout.buffers), all.back());
  if (auto written = arrays.write_back(); !written) return written.error();
  return ApplyReport{norm, rate};
}

}  // namespace rivulet::devices
