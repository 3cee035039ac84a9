#include "tests/support/replay/replay_learner.h"

#include "core/rng.h"
#include "runtime/node/node_config.h"
#include "runtime/state/state_file.h"

namespace rivulet::runtime {

Result<ReplayLearner> make_replay_learner(const Config& config, const Catalog& catalog,
                                          const StopRequest& stop) {
  ReplayLearner out;
  out.device = devices::make_host_device();
  auto decoder = build_decoder(config, catalog);
  if (!decoder) return decoder.error();
  if (const auto needs = needs_of_model(config, catalog, decoder.value()->shape(), &stop); !needs)
    return needs.error();
  auto trainer = build_trainer(config, catalog, decoder.value()->shape(), *out.device);
  if (!trainer) return trainer.error();
  out.trainer = std::move(trainer).value();
  out.config = worker_config(config, {}, decoder.value()->shape(), out.trainer->layout());
  out.config.owner = owner_of(config, *decoder.value());
  auto optimizer = build_optimizer(config, catalog);
  if (!optimizer) return optimizer.error();
  out.config.optimizer = std::move(optimizer).value();
  return out;
}

Result<AgreedState> state_at_begin(const Config& config, const std::string& file, ReplayLearner& learner) {
  const auto& layout = learner.trainer->layout();
  if (!file.empty()) {
    auto read = read_state_file(file, {learner.config.owner, layout, *learner.device});
    if (!read) return read.error();
    return std::move(read.value().state);
  }
  auto model = devices::ModelState::create(layout, *learner.device);
  if (!model) return model.error();
  AgreedState state{std::move(model).value(), {}, 0, {}};
  if (auto begun = learner.trainer->initialize(state.model, derive_seed(config.job.seed, "model")); !begun)
    return begun.error();
  return state;
}

}  // namespace rivulet::runtime
