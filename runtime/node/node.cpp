#include "runtime/node/node.h"

#include <algorithm>
#include <typeinfo>

#include "core/rng.h"
#include "devices/class_balance.h"
#include "devices/normalizer.h"
#include "runtime/node/meaning.h"
#include "runtime/node/node_config.h"

namespace rivulet::runtime {
namespace {

template <class Entry>
Result<const Entry*> find_entry(std::span<const Entry* const> entries, const std::string& key,
                                const std::string& name) {
  std::string known;
  for (const Entry* e : entries) {
    if (e->name == name) return e;
    known += (known.empty() ? "" : ", ") + std::string(e->name);
  }
  return Error{ErrorCode::invalid_config,
               key + " = \"" + name + "\" is not in this build; available: " + known};
}

}  // namespace

Catalog builtin_catalog() {
  return {stream::builtin_decoders(), devices::builtin_models(), devices::builtin_optimizers(),
          sync::builtin_sync_catalog()};
}

Result<std::unique_ptr<stream::Decoder>> build_decoder(const Config& config, const Catalog& catalog) {
  const auto entry = find_entry(catalog.decoders, "decode.format", config.decode.format);
  if (!entry) return entry.error();
  return entry.value()->make(decode_config(config));
}

Result<devices::OptimizerConfig> build_optimizer(const Config& config, const Catalog& catalog) {
  const auto& train = config.train;
  const auto entry = find_entry(catalog.optimizers, "train.optimizer.name", train.optimizer);
  if (!entry) return entry.error();
  return devices::OptimizerConfig{entry.value(),
                                  train.lr,
                                  train.weight_decay,
                                  train.clip_grad_norm,
                                  config.settings.of(entry.value()->keys),
                                  train.clip_usual};
}

namespace {

devices::NormalizedColumns normalized_columns(const Config& config, const devices::ModelEntry& model,
                                              const RowShape& rows) {
  const bool numbers = !is_classification(config) && config.normalize.targets;
  return {.features = config.decode.normalize ? rows.columns() : 0,
          .targets = numbers ? config.model.outputs : 0,
          .window = static_cast<double>(config.normalize.window),
          .limit = config.normalize.limit,
          .linear_first = model.linear_first,
          .linear_last = model.linear_last};
}

}  // namespace

Result<std::unique_ptr<devices::Trainer>> build_trainer(const Config& config, const Catalog& catalog,
                                                        const RowShape& rows_shape, devices::Device& device) {
  const auto entry = find_entry(catalog.models, "model.name", config.model.name);
  if (!entry) return entry.error();
  const auto optimizer = build_optimizer(config, catalog);
  if (!optimizer) return optimizer.error();
  devices::ModelConfig model = model_config(config, rows_shape);
  model.optimizer_arrays = devices::arrays_of(*optimizer.value().entry);
  model.average_rows = static_cast<double>(config.train.average);
  auto trainer = entry.value()->make(model, device);
  if (!trainer) return trainer;
  auto normalizing = devices::make_normalizing(std::move(trainer).value(), device,
                                               normalized_columns(config, *entry.value(), rows_shape));
  const auto& given = config.train.class_weights;
  if (!is_classification(config) || (given.empty() && !config.train.balanced)) return normalizing;
  return devices::make_balancing(std::move(normalizing), device, config.model.classes,
                                 {given.begin(), given.end()}, static_cast<double>(config.normalize.window));
}

namespace {

bool has_fixed_rows(const Config& config) {
  const auto* batch = sync::policy::controller_named(sync::policy::Role::batch, config.batch.policy);
  return batch != nullptr && batch->fixed_rows;
}

/// Returns the minimum and maximum rows of a batch.
std::pair<std::size_t, std::size_t> rows_of_batches(const Config& config) {
  const auto& batch = config.batch;
  if (has_fixed_rows(config)) return {batch.rows, batch.rows};
  return {batch.min, std::max<std::size_t>(batch.min, std::min<std::size_t>(batch.max, config.buffer.rows))};
}

// Time limit of a trial: a slower model cannot keep up with a stream, even on the slowest board.
constexpr Duration trial_deadline = std::chrono::minutes(2);

}  // namespace

Result<devices::ModelNeeds> needs_of_model(const Config& config, const Catalog& catalog, const RowShape& rows,
                                           const StopRequest* stop) {
  const auto entry = find_entry(catalog.models, "model.name", config.model.name);
  if (!entry) return entry.error();
  const auto model = model_config(config, rows);
  if (entry.value()->try_out != nullptr) {
    const auto [least, most] = rows_of_batches(config);
    return entry.value()->try_out(model, {.rows_min = least,
                                          .rows_max = most,
                                          .memory = static_cast<double>(config.device.memory),
                                          .patience = {.deadline = trial_deadline, .stop = stop}});
  }
  return entry.value()->needs == nullptr ? devices::ModelNeeds{} : entry.value()->needs(model);
}

Status expect_synthetic_rows(Config& config, const Catalog& catalog) {
  const auto decoder = build_decoder(config, catalog);
  if (!decoder) return decoder.error();
  config.decode.shape = decoder.value()->shape().shape;
  // Synthetic rows are numbers, in which a text format would find no fields.
  const bool text = config.settings.has<Settings::Texts>("decode." + config.decode.format + ".features");
  if (text) config.decode.format = "raw";
  config.settings.set("decode.raw.label", std::string("f32"));
  config.settings.set("decode.raw.features", std::string("f32"));
  config.decode.scale = {1};
  config.decode.shift = {0};
  return ok();
}

Result<std::unique_ptr<Node>> Node::build(const LoadedConfig& loaded, const RunOptions& options,
                                          const Catalog& catalog, NodeDependencies outside) {
  std::unique_ptr<Node> node(new Node(std::move(outside)));
  if (auto made = node->make(loaded, options, catalog); !made) return made.error();
  return node;
}

Status Node::make(const LoadedConfig& loaded, const RunOptions& options, const Catalog& catalog) {
  const Config& config = loaded.config;
  auto decoder = build_decoder(config, catalog);
  if (!decoder) return decoder.error();
  decoder_ = std::move(decoder).value();
  owner_ = outside_.owner ? *outside_.owner : owner_of(config, *decoder_);
  if (auto made = make_learner(config, catalog); !made) return made;
  auto rows = buffer::RowBuffer::create(config.buffer.rows, decoder_->shape());
  if (!rows) return rows.error();
  rows_ = std::move(rows).value();
  auto joining = membership_config(loaded, outside_.nonce_seed);
  joining.hello.new_run = options.new_run;
  joining.limited = !options.dry_run && options.stop_after.rows + options.stop_after.rounds > 0;
  joining.rollback_to = rollback_to_;
  joining.unusable = unusable_;
  joining.rules = outside_.rules;
  joining.rules.cool_down = joining.rules.cool_down && options.cool_down;
  joining.shared_fold = outside_.shared_fold;
  const std::size_t state_bytes = state_array_bytes(trainer_->layout());
  const bool copies = outside_.copies && state_bytes > outside_.copies->above;
  joining.copied_bytes = copies ? state_bytes : 0;
  membership_ = sync::membership::make_membership(joining, *outside_.log);
  make_donor(config);
  return make_agents(loaded, options, catalog);
}

/// Makes the model, its first agreed state (from the job's seed, as on every device), and snapshot space.
Status Node::make_learner(const Config& config, const Catalog& catalog) {
  trainer_ = outside_.lent_trainer;
  if (trainer_ == nullptr) {
    auto trainer = build_trainer(config, catalog, decoder_->shape(), *outside_.device);
    if (!trainer) return trainer.error();
    own_trainer_ = std::move(trainer).value();
    trainer_ = own_trainer_.get();
  }
  auto model = devices::ModelState::create(trainer_->layout(), *outside_.device);
  if (!model) return model.error();
  AgreedState first{std::move(model).value(), {}, 0, {}};
  if (auto begun = trainer_->initialize(first.model, derive_seed(config.job.seed, "model")); !begun)
    return begun;
  state_ = std::make_unique<StateHandle>(std::move(first));
  if (outside_.checkpoint_wake != nullptr) {
    if (auto loaded = load_checkpoint(config); !loaded) return loaded;
    if (auto made = make_checkpointer(config); !made) return made;
  }
  std::optional<devices::ModelState> space;
  if (outside_.snapshots) {
    auto room = devices::ModelState::create(trainer_->layout(), *outside_.device);
    if (!room) return room.error();
    space.emplace(std::move(room).value());
  }
  snapshots_ = std::make_unique<SnapshotSlot>(std::move(space));
  return ok();
}

/// Loads the newest state from this device's disk; the group may have a newer one.
Status Node::load_checkpoint(const Config& config) {
  std::vector<std::string> problems;
  CheckpointFolder folder(outside_.checkpoints, outside_.files);
  folder.sweep();
  const Expected expected{owner_, trainer_->layout(), *outside_.device};
  auto newest = folder.newest(expected, problems);
  for (const auto& problem : problems)
    outside_.logger.write(Level::warn, "a checkpoint cannot be used", {{"why", problem}});
  if (!problems.empty()) unusable_ = problems.front();
  const auto told = folder.rollback_requested();
  const Stamp stamp = newest ? newest->state.stamp : Stamp{};
  if (told && *told != stamp) folder.forget_going_back();  // trained since the rollback
  if (!newest) return refuse_misfit(folder, expected);
  const bool alone = config.job.devices == 1;
  if (told == stamp || (alone && newest->damaged)) rollback_to_ = stamp;
  if (newest->damaged && alone) log_repeated_work(*newest);
  problems.clear();
  private_part_ = folder.private_part(stamp, trainer_->layout(), problems);
  for (const auto& problem : problems)
    outside_.logger.write(Level::warn, "the private part of this device's checkpoint is lost",
                          {{"why", problem}});
  if (outside_.own_log) newest->state.stamp.lineage = 0;
  state_->replace(std::move(newest->state));
  outside_.logger.write(Level::info, "checkpoint loaded",
                        {{"state", text_of((*state_)->stamp)}, {"file", newest->path}});
  return ok();
}

/// Rejects intact states that do not fit, because starting from scratch would silently abandon them.
Status Node::refuse_misfit(const CheckpointFolder& folder, const Expected& expected) const {
  const auto misfit = folder.misfit(expected);
  if (!misfit) return ok();
  return Error{
      ErrorCode::invalid_config,
      *misfit + ". Restore the former value, start over with --new-run, or use another device.data_dir"};
}

/// Reports the repeated work of a device without peers. It has committed everything it saved, so every older
/// file belongs to the same history.
void Node::log_repeated_work(const CheckpointFolder::Found& found) {
  const DamagedCheckpoint& damaged = *found.damaged;
  const AgreedState& state = found.state;
  const bool later = damaged.stamp.step >= state.stamp.step;
  const auto rows = damaged.rows && *damaged.rows >= state.rows ? std::to_string(*damaged.rows - state.rows)
                                                                : std::string("unknown");
  outside_.logger.write(
      Level::warn, "the newest checkpoint is damaged: rows trained since an older one are trained again",
      {{"damaged", damaged.path},
       {"going_on_from", found.path},
       {"rounds_again", later ? std::to_string(damaged.stamp.step - state.stamp.step) : "unknown"},
       {"rows_again", rows}});
}

Status Node::make_checkpointer(const Config& config) {
  auto room = devices::ModelState::create(trainer_->layout(), *outside_.device);
  if (!room) return room.error();
  checkpoints_ = std::make_unique<Checkpointer>(
      CheckpointFolder(outside_.checkpoints, outside_.files), config.checkpoint.keep, owner_,
      std::move(room).value(),
      Checkpointer::Parts{outside_.worker_clock, *outside_.device, outside_.metrics, outside_.logger,
                          *outside_.checkpoint_wake, outside_.worker_wake});
  return ok();
}

void Node::make_donor(const Config& config) {
  if (config.job.devices.is_fixed() || !outside_.copies) return;
  const CopyDependencies& copies = *outside_.copies;
  donor_ = std::make_unique<StateDonor>(
      StateDonor::Parts{copies.clock, copies.wake, copies.give, *membership_, owner_, trainer_->layout(),
                        *outside_.device, outside_.logger, config.sync.deadline});
}

Status Node::make_agents(const LoadedConfig& loaded, const RunOptions& options, const Catalog& catalog) {
  const Config& config = loaded.config;
  IngestConfig reading;
  reading.poll_wait = outside_.poll_wait;
  reading.commit = !options.dry_run;
  reading.stop_on_bad_row = config.decode.on_error == "stop";
  if (config.source.retention == "truncate-newest") reading.retention = Retention::truncate_newest;
  if (config.source.retention == "truncate-oldest") reading.retention = Retention::truncate_oldest;
  reading.largest_batch = config.batch.max;
  reading.health.steps_in_time = !options.dry_run && (!has_fixed_rows(config) || config.job.devices == 1);
  reading.health.batch_least = rows_of_batches(config).first;
  reading.format = config.decode.format;
  reading.topics = config.source.topics;
  std::sort(reading.topics.begin(), reading.topics.end());  // the order of PartitionId::topic
  ingest_ = std::make_unique<Ingest>(
      reading,
      Ingest::Parts{outside_.ingest_clock, *outside_.source, *decoder_, *rows_, ledger_, commits_,
                    assignments_, gauge_, status_, outside_.metrics, outside_.logger, outside_.worker_wake});
  const auto optimizer = build_optimizer(config, catalog);
  if (!optimizer) return optimizer.error();
  WorkerConfig training = worker_config(config, options, decoder_->shape(), trainer_->layout());
  training.owner = owner_;
  // No rollback: views restart at 1 in every process, so states of a second view would always look newer.
  if (outside_.own_log) training.session.policy.on_divergence = "ignore";
  training.optimizer = optimizer.value();
  for (std::size_t i = 0;
       config.decode.normalize && i < std::min(decoder_->shape().columns(), features_watched); ++i)
    training.features.push_back(decoder_->column_name(i));
  training.group = group_hash(group_keys(loaded));
  training.age_at_start_s = outside_.age_at_start_s;
  auto worker = Worker::create(training, Worker::Parts{outside_.worker_clock,
                                                       outside_.worker_wake,
                                                       outside_.ingest_wake,
                                                       *rows_,
                                                       ledger_,
                                                       commits_,
                                                       assignments_,
                                                       gauge_,
                                                       *outside_.device,
                                                       *trainer_,
                                                       *state_,
                                                       *membership_,
                                                       outside_.connect,
                                                       outside_.copies ? &outside_.copies->take : nullptr,
                                                       donor_.get(),
                                                       catalog.sync,
                                                       *snapshots_,
                                                       checkpoints_.get(),
                                                       *outside_.decisions,
                                                       status_,
                                                       outside_.metrics,
                                                       outside_.logger,
                                                       outside_.stop});
  if (!worker) return worker.error();
  worker_ = std::move(worker).value();
  if (!private_part_) return ok();
  auto begun = worker_->begin_with(*private_part_);
  private_part_.reset();
  return begun;
}

std::vector<std::pair<std::string, std::string>> Node::object_types() const {
  const auto type = [](const auto& object) { return std::string(typeid(object).name()); };
  return {{"clock", type(outside_.worker_clock)},
          {"wake", type(outside_.worker_wake)},
          {"source", type(*outside_.source)},
          {"device", type(*outside_.device)},
          {"log", type(*outside_.log)},
          {"metrics", type(outside_.metrics)},
          {"decisions", type(*outside_.decisions)},
          {"decoder", type(*decoder_)},
          {"trainer", type(*trainer_)},
          {"rows", type(*rows_)},
          {"ledger", type(ledger_)},
          {"commits", type(commits_)},
          {"snapshots", type(*snapshots_)},
          {"membership", type(*membership_)},
          {"ingest", type(*ingest_)},
          {"worker", type(*worker_)},
          {"state", type(*state_)}};
}

}  // namespace rivulet::runtime
