#include "runtime/train/local_model.h"

#include <algorithm>

namespace rivulet::runtime {
namespace {

/// out = a - b.
void subtract(const GradientView& a, const GradientView& b, const GradientView& out) {
  const auto each = [](auto from, auto take, auto into) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = from[i] - take[i];
  };
  if (out.scalar == Scalar::f32)
    each(a.as<float>(), b.as<float>(), out.as<float>());
  else
    each(a.as<double>(), b.as<double>(), out.as<double>());
}

}  // namespace

Result<std::unique_ptr<LocalModel>> LocalModel::create(const Parts& parts) {
  const auto& layout = parts.trainer.layout();
  auto memory = parts.device.allocate(layout.contribution() * bytes_of(layout.scalar));
  if (!memory) return memory.error();
  std::unique_ptr<LocalModel> model(new LocalModel(parts));
  model->memory_ = std::move(memory).value();
  model->gradient_ = model->memory_->view(layout.scalar, layout.contribution());
  return model;
}

Status LocalModel::compute(const BatchView& batch, const AgreedState& state) {
  if (computed_ && batch.rows > 0) return ok();
  report_ = {};
  finite_ = true;
  compute_seconds_ = 0;
  if (batch.rows == 0) return ok();
  const TimePoint before = parts_.clock.now();
  auto report = parts_.trainer.compute_gradients(private_ ? *private_ : state.model, batch, gradient_);
  if (!report) return report.error();
  parts_.device.charge({batch.rows});
  compute_seconds_ = to_seconds(parts_.clock.now() - before);
  report_ = report.value();
  finite_ = report_.finite;
  computed_ = true;
  return ok();
}

Status LocalModel::prepare_gradient() {
  auto host = parts_.device.to_host(gradient_);
  if (!host) return host.error();
  mine_ = host.value();
  return ok();
}

Status LocalModel::step(const AgreedState& state, std::size_t rows, double learning_rate_factor) {
  if (rows == 0 || !finite_) return ok();
  if (!private_) {
    auto copy = devices::ModelState::create(state.model.layout(), parts_.device);
    if (!copy) return copy.error();
    private_.emplace(std::move(copy).value());
    private_->copy_from(state.model);
  }
  auto host = parts_.device.to_host(gradient_);
  if (!host) return host.error();
  const std::uint64_t number = state.stamp.step + ++private_steps_;
  auto applied = devices::apply_gradient(parts_.optimizer, *private_, host.value(), learning_rate_factor,
                                         number, parts_.device);
  if (!applied) return applied.error();
  rows_since_sync_ += static_cast<std::uint32_t>(rows);
  return ok();
}

Status LocalModel::prepare_delta(const AgreedState& state, std::size_t rows, double learning_rate_factor) {
  if (auto stepped = step(state, rows, learning_rate_factor); !stepped) return stepped;
  if (!gradient_.host_readable())
    return Error{ErrorCode::unavailable, "delta mode needs a device whose memory the host can read"};
  const auto& layout = state.model.layout();
  const auto& from = private_ ? *private_ : state.model;
  mine_ = gradient_;
  subtract(from.parameters(), state.model.parameters(), mine_.slice(0, layout.parameters));
  std::ranges::copy(from.buffers().host_bytes(),
                    mine_.slice(layout.parameters, layout.buffers).host_bytes().begin());
  return ok();
}

void LocalModel::drop_private_steps() {
  private_.reset();
  private_steps_ = 0;
  rows_since_sync_ = 0;
}

}  // namespace rivulet::runtime
