#include "tests/support/replay/replay_models.h"

#include <limits>

namespace rivulet::runtime {

bool ReplayModels::local_steps_of(const sync::policy::Schedule& entered, const sync::FactsTable& table) {
  return entered.local || sync::any_flag(table, sync::flag_local_steps);
}

ReplayModels::Kept ReplayModels::kept() const {
  Kept all;
  for (const auto& [id, device] : devices_) {
    const LocalModel& model = *device.model;
    PrivatePart part{.local_steps = model.kept_steps(), .local_norm = model.kept_norm()};
    for (const auto array : model.kept()) part.local_arrays.emplace_back(array.begin(), array.end());
    if (!part.empty()) all.emplace(id, std::move(part));
  }
  return all;
}

Status ReplayModels::restore(const Kept& kept, const AgreedState& state) {
  devices_.clear();
  for (const auto& [id, part] : kept) {
    auto device = device_of(id);
    if (!device) return device.error();
    if (auto begun = device.value()->model->begin_with(part, state); !begun) return begun;
  }
  return ok();
}

Result<ReplayModels::Device*> ReplayModels::device_of(const std::string& id) {
  Device& device = devices_[id];
  if (device.model) return &device;
  auto made = LocalModel::create({clock_, parts_.device, parts_.trainer, parts_.optimizer, device.intervals});
  if (!made) return made.error();
  device.model = std::move(made).value();
  return &device;
}

Status ReplayModels::enter(const std::string& id, std::uint64_t digest, const AgreedState& state) {
  if (digest == 0) {
    devices_.erase(id);
    return ok();
  }
  const auto known = devices_.find(id);
  if (known == devices_.end() || known->second.model->kept_digest() != digest) {
    // It began local steps from this state, which were not synchronized yet.
    devices_.erase(id);
    auto fresh = device_of(id);
    if (!fresh) return fresh.error();
    if (auto made = fresh.value()->model->make_private(state); !made) return made;
  }
  LocalModel& model = *devices_.at(id).model;
  if (model.kept_digest() != digest)
    return Error{
        ErrorCode::bad_record,
        id + " began with what its own steps had left before this replay begins, which no log records: "
             "replay from the beginning of a run"};
  model.roll_back(state);
  return ok();
}

Status ReplayModels::make_step(LocalModel& model, const AgreedState& state,
                               const sync::policy::LocalStepRate& rate, const ReplayBatch& batch) {
  const BatchView view = batch.view();
  if (view.rows == 0) return Error{ErrorCode::bad_record, "an own step without rows"};
  model.invalidate();
  if (auto computed = model.compute(view, view.rows, state); !computed) return computed;
  if (auto stepped = model.step(state, view.rows, rate.of(view.rows)); !stepped) return stepped;
  model.own().add(model.report(), view.tags, 0, clock_.now());
  return ok();
}

Result<LocalModel*> ReplayModels::step(const std::string& id, const Announced& announced,
                                       const sync::FactsSection& section, const Rates& rates,
                                       const AgreedState& state, ReplayRows& rows, ReplayBatch& batch) {
  const auto refused = [&](const std::string& why) {
    return Error{ErrorCode::bad_record, id + " announces " + why};
  };
  std::vector<RowInterval> intervals;
  for (const RowInterval& interval : announced.intervals())
    if (interval.rows_trained > 0) intervals.push_back(interval);
  const std::size_t steps = intervals.empty() ? 0 : section.step_rows.size() / intervals.size();
  if (steps * intervals.size() != section.step_rows.size() || (steps == 0 && !intervals.empty()))
    return refused("local steps that do not match its rows");
  auto made = device_of(id);
  if (!made) return made.error();
  LocalModel& model = *made.value()->model;
  const ModelPoint& departure = made.value()->departure;
  const std::size_t ahead = section.steps_ahead.empty() ? 0 : section.steps_ahead.front();
  if (ahead > steps || (ahead > 0 && departure.parameters.empty()))
    return refused("steps while the group agreed, which it has not made");
  if (ahead > 0) model.return_to(departure);
  for (std::size_t k = 0; k < steps; ++k) {
    batch.clear();
    for (std::size_t i = 0; i < intervals.size(); ++i) {
      const bool last = k + 1 == steps;
      const std::size_t most =
          last ? std::numeric_limits<std::size_t>::max() : section.step_rows[k * intervals.size() + i];
      if (auto read = rows.take(intervals[i], announced.runs(), batch, most); !read) return read.error();
    }
    if (auto stepped = make_step(model, state, k < ahead ? rates.ahead : rates.usual, batch); !stepped)
      return stepped.error().code == ErrorCode::bad_record ? refused(stepped.error().message)
                                                           : stepped.error();
    if (k + 1 == ahead) model.resume(state);
  }
  return &model;
}

void ReplayModels::depart(const std::string& id) {
  Device& device = devices_.at(id);
  device.model->depart();
  device.departure = device.intervals.current.start;
}

void ReplayModels::undo_departed(const AgreedState& state) {
  for (const auto& [id, device] : devices_)
    if (device.model->departed()) device.model->roll_back(state);
}

void ReplayModels::agreed(const AgreedState& state, bool applied,
                          std::map<std::string, sync::Residual>& residuals) {
  for (const auto& [id, device] : devices_) {
    const auto residual = residuals.find(id);
    device.model->agreed(state, applied,
                         residual != residuals.end() ? residual->second.left() : GradientView{});
  }
}

}  // namespace rivulet::runtime
