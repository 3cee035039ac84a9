#include "runtime/node/node_config.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <span>
#include <utility>

#include "core/digest.h"
#include "core/rng.h"
#include "devices/optimizer.h"
#include "runtime/node/meaning.h"
#include "stream/decoder/fill.h"

namespace rivulet::runtime {
namespace {

std::string host_name() {
  char name[256] = {};
  return gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

/// Returns all feature values that a raw decoder can produce, if there are few.
std::vector<float> usual_features(const Config& config) {
  std::vector<float> all;
  if (config.decode.format != "raw" || config.settings.text("decode.raw.features") != "u8") return all;
  const auto scale = static_cast<float>(config.settings.number("decode.raw.scale"));
  const auto shift = static_cast<float>(config.settings.number("decode.raw.shift"));
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<float>(byte) * scale + shift);
  return all;
}

const devices::OptimizerEntry* optimizer_named(std::string_view name) {
  for (const devices::OptimizerEntry* entry : devices::builtin_optimizers())
    if (entry->name == name) return entry;
  return nullptr;
}

}  // namespace

bool is_classification(const Config& config) {
  return config.train.loss == "cross_entropy";
}

std::vector<std::string> class_names(const Config& config) {
  auto names = config.decode.classes;
  for (std::size_t i = names.size(); i < config.model.classes; ++i) names.push_back(std::to_string(i));
  return names;
}

bool measures_held_out(const Config& config) {
  return is_classification(config) && !config.evaluate.held_out_path.empty();
}

std::string transfer_policy(const Config& config) {
  const auto* transfer = sync::policy::controller_named(sync::policy::Role::transfer, config.inject.policy);
  if (transfer == nullptr || !transfer->weighs_local_steps) return config.inject.policy;
  sync::policy::PolicyConfig policy{.sync_policy = config.sync.policy};
  policy.settings = sync::policy::settings_of(policy, config.settings);
  const auto* when = sync::policy::controller_named(sync::policy::Role::when, config.sync.policy);
  const bool local_steps = when != nullptr && when->plans_steps && when->contributes_deltas(policy);
  return local_steps && is_classification(config) && config.job.devices.max > 1 ? config.inject.policy
                                                                                : "none";
}

const devices::ModelEntry* model_named(std::string_view name) {
  for (const devices::ModelEntry* entry : devices::builtin_models())
    if (entry->name == name) return entry;
  return nullptr;
}

stream::DecodeConfig decode_config(const Config& config) {
  const auto& d = config.decode;
  stream::DecodeConfig out;
  out.format = d.format;
  out.max_record_bytes = d.max_record_bytes;
  out.classes = is_classification(config) ? config.model.classes : 0;
  out.shape = d.shape;
  out.scale.assign(d.scale.begin(), d.scale.end());
  out.shift.assign(d.shift.begin(), d.shift.end());
  out.features = d.features;
  out.target = d.target;
  out.class_names = d.classes;
  out.normalizes = d.normalize;
  out.missing = d.missing;
  out.fill = stream::parse_fill(d.fill).value_or(stream::Fill{});
  out.where = d.where;
  out.decimal = d.decimal;
  out.settings = config.settings;
  return out;
}

devices::ModelConfig model_config(const Config& config, const RowShape& rows) {
  devices::ModelConfig out;
  out.name = config.model.name;
  out.input = rows.shape;
  out.outputs = is_classification(config) ? config.model.classes : config.model.outputs;
  out.loss = is_classification(config) ? devices::Loss::cross_entropy : devices::Loss::mse;
  out.scalar = config.model.dtype == "float64" ? Scalar::f64 : Scalar::f32;
  out.memory_format = config.model.memory_format == "contiguous" ? devices::MemoryFormat::contiguous
                                                                 : devices::MemoryFormat::channels_last;
  out.autocast_bfloat16 = config.model.autocast == "bfloat16";
  out.threads = config.device.threads;
  out.settings = config.settings;
  return out;
}

StateOwner owner_of(const Config& config, const stream::Decoder& decoder) {
  const devices::ModelEntry* model = model_named(config.model.name);
  const bool own = model != nullptr && model->state_name != nullptr;
  return {own ? model->state_name(config.settings) : config.model.name, config.job.name, config.source.topics,
          meaning_of(config, decoder)};
}

DataOwner data_owner_of(const Config& config) {
  return {config.job.name, config.device.id};
}

WorkerConfig worker_config(const Config& config, const RunOptions& options, const RowShape& rows,
                           const devices::ModelLayout& layout) {
  WorkerConfig out;
  auto& policy = out.session.policy;
  policy.sync_policy = config.sync.policy;
  policy.batch_policy = config.batch.policy;
  policy.rows = config.batch.rows;
  policy.min = config.batch.min;
  policy.max = config.batch.max;
  policy.tick = config.batch.tick;
  policy.max_wait = config.batch.max_wait;
  policy.collective = config.sync.collective;
  policy.checkpoint_rounds = options.dry_run ? 0 : config.checkpoint.every_rounds;
  policy.contribution_bytes = layout.contribution() * bytes_of(layout.scalar);
  policy.number_bytes = static_cast<std::uint32_t>(bytes_of(layout.scalar));
  policy.buffers = layout.buffers;
  for (const devices::TensorSlot& slot : layout.parameter_slots) {
    policy.tensors.push_back(slot.count);
    const bool is_matrix = slot.shape.size() > 1 && slot.shape[0] > 0;
    policy.tensor_rows.push_back(is_matrix ? static_cast<std::uint64_t>(slot.shape[0]) : 1);
  }
  const devices::OptimizerEntry* optimizer = optimizer_named(config.train.optimizer);
  policy.momentum_adds_up = optimizer != nullptr && optimizer->delta_per_gradient != nullptr;
  policy.compression_policy = config.compression.policy;
  policy.learning_rate_policy = config.train.lr_schedule;
  policy.transfer_policy = transfer_policy(config);
  policy.on_divergence = config.train.on_divergence;
  policy.changes_size = !config.job.devices.is_fixed();
  policy.devices = config.job.devices.wanted;
  policy.settings = sync::policy::settings_of(policy, config.settings);
  out.session.row_shape = rows;
  out.session.rows_max = static_cast<std::uint32_t>(
      std::min<std::size_t>(std::max(config.batch.max, config.batch.rows), config.buffer.rows));
  out.session.shape = sync::policy::shape_of(policy);
  out.session.settings = config.settings;
  if (policy.momentum_adds_up)
    out.session.delta_per_gradient = optimizer->delta_per_gradient(config.train.lr, config.settings);
  out.session.speculate = config.sync.speculate;
  out.partitions = claimed_partitions(config);
  out.stop_after = options.stop_after;
  out.dry_run = options.dry_run;
  out.reform = config.sync.on_peer_loss != "exit";
  out.peer_deadline = config.sync.deadline;
  out.checkpoint_interval = config.checkpoint.every_interval;
  out.stop_on_nonfinite = config.train.on_nonfinite == "stop";
  out.digest_every = config.sync.digest_every;
  out.classification = is_classification(config);
  out.classes =
      out.classification ? static_cast<std::size_t>(std::max<std::int64_t>(0, config.model.classes)) : 0;
  if (out.classification) {
    out.class_names = class_names(config);
    out.class_names.resize(std::min(out.class_names.size(), ScoreWindow::classes_counted + 1));
  } else {
    out.targets = config.normalize.targets ? GuessWatch::Targets::normalized : GuessWatch::Targets::numbers;
  }
  out.model_seed = derive_seed(config.job.seed, "model");
  out.injection_seed = derive_seed(config.job.seed, "copies",
                                   rivulet::digest_of(std::as_bytes(std::span(config.device.id))).low);
  out.usual_features = usual_features(config);
  out.features_may_miss = config.decode.normalize;
  out.speed_hint = config.device.speed > 0 ? config.device.speed : config.device.threads;
  out.prequential_window = config.evaluate.prequential_window;
  return out;
}

/// Devices send values, so that messages can name a difference. Long values are cut and get a digest, which
/// still differs.
std::map<std::string, std::string> shortened(std::map<std::string, std::string> keys) {
  constexpr std::size_t shown = 256;
  for (auto& [key, value] : keys) {
    if (value.size() <= 2 * shown) continue;
    const auto digest = rivulet::digest_of(std::as_bytes(std::span(value)));
    value = value.substr(0, shown) + "... (" + std::to_string(value.size()) + " characters, " + digest.hex() +
            ")";
  }
  return keys;
}

sync::membership::MembershipConfig membership_config(const LoadedConfig& loaded, std::uint64_t nonce_seed) {
  const Config& config = loaded.config;
  sync::membership::MembershipConfig out;
  out.job = config.job.name;
  out.nonce_seed = nonce_seed;
  out.takeover_wait = std::max(out.takeover_wait, config.sync.deadline);  // when its peers consider it lost
  auto& hello = out.hello;
  hello.device = config.device.id;
  hello.host = host_name();
  hello.pid = getpid();
  hello.devices = config.job.devices;
  const auto keys = group_keys(loaded);
  hello.config = shortened(keys);
  // Includes the fold version: builds with different folds must not form a group.
  hello.config_hash = group_hash(keys) + "." + std::to_string(sync::membership::fold_version);
  for (const auto& [topic, partition] : config.source.claims)
    hello.partitions.push_back(topic + ":" + std::to_string(partition));
  std::sort(hello.partitions.begin(), hello.partitions.end());
  return out;
}

std::vector<PartitionId> claimed_partitions(const Config& config) {
  std::vector<std::string> topics = config.source.topics;
  std::sort(topics.begin(), topics.end());
  std::vector<PartitionId> out;
  for (const auto& [topic, partition] : config.source.claims) {
    const auto at = std::find(topics.begin(), topics.end(), topic);
    out.push_back({static_cast<std::uint32_t>(at - topics.begin()), partition});
  }
  return out;
}

stream::SyntheticSourceConfig synthetic_config(const Config& config) {
  stream::SyntheticSourceConfig synthetic;
  synthetic.columns = 1;
  for (const auto d : config.decode.shape) synthetic.columns *= static_cast<std::size_t>(d);
  synthetic.classes = is_classification(config) ? config.model.classes : 0;
  synthetic.seed = config.job.seed;
  return synthetic;
}

bool has_brokers(const Config& config) {
  for (const auto& [key, value] : config.source.kafka_properties)
    if (key == "bootstrap.servers" || key == "metadata.broker.list") return !value.empty();
  return false;
}

Result<stream::StartOffset> start_offset(const Config& config) {
  const std::string& text = config.source.start;
  using Kind = stream::StartOffset::Kind;
  if (text == "checkpoint" || text == "earliest") return stream::StartOffset{Kind::earliest, 0};
  if (text == "latest") return stream::StartOffset{Kind::latest, 0};
  std::int64_t offset = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), offset);
  if (error != std::errc() || end != text.data() + text.size() || offset < 0)
    return Error{ErrorCode::invalid_config,
                 "source.start = \"" + text + "\": use checkpoint, earliest, latest or an offset"};
  return stream::StartOffset{Kind::absolute, offset};
}

}  // namespace rivulet::runtime
