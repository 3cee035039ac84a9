#include "sync/policy/controller.h"

#include <algorithm>
#include <cmath>

namespace rivulet::sync::policy {
namespace {

const ControllerEntry* find(std::span<const ControllerEntry* const> catalog, Role role,
                            std::string_view name) {
  for (const ControllerEntry* entry : catalog)
    if (entry->role == role && entry->name == name) return entry;
  return nullptr;
}

/// Configured name for a role, whether or not such a controller exists.
std::string_view name_for(const PolicyConfig& config, Role role) {
  switch (role) {
    case Role::when: return config.sync_policy;
    case Role::batch: return config.batch_policy;
    case Role::compression: return config.compression_policy;
    case Role::collective: return config.collective;
    case Role::learning_rate: return config.learning_rate_policy;
    case Role::transfer: return config.transfer_policy;
  }
  return "";
}

/// Whether the text is one of the key's choices.
bool allows(const Key& key, std::string_view text) {
  if (key.choices.empty()) return true;
  const std::string all = " | " + std::string(key.choices) + " | ";
  return all.find(" | " + std::string(text) + " | ") != std::string::npos;
}

/// Checks that all settings are present and within the limits of their keys. Errors: bad_record.
Status check_settings(std::span<const Key> keys, const PolicyConfig& config) {
  for (const Key& key : keys) {
    const std::string name(key.name);
    const auto found = std::ranges::find(config.settings, key.name, &PolicySetting::name);
    if (found == config.settings.end()) return Error{ErrorCode::bad_record, "no setting for " + name};
    const double number = found->number;
    const bool in_range = number >= key.least && number <= key.most && !(key.above && number == key.least);
    const bool readable = allows(key, found->text) && (key.fits == nullptr || key.fits(found->text));
    if (key.type == KeyType::text ? !readable : !in_range)
      return Error{ErrorCode::bad_record, "the setting of " + name + " is out of range"};
  }
  return ok();
}

void add_settings(std::span<const Key> keys, const Settings& settings, std::vector<PolicySetting>& all) {
  for (const Key& key : keys) {
    PolicySetting one{std::string(key.name)};
    switch (key.type) {
      case KeyType::text: one.text = settings.text(key.name); break;
      case KeyType::integer: one.number = static_cast<double>(settings.integer(key.name)); break;
      case KeyType::number: one.number = settings.number(key.name); break;
      case KeyType::boolean: one.number = settings.flag(key.name) ? 1 : 0; break;
      case KeyType::duration: one.number = to_seconds(settings.duration(key.name)); break;
      case KeyType::texts:
      case KeyType::integers:
      case KeyType::numbers: RIVULET_CHECK(false, "a key of a controller or compressor takes one value");
    }
    all.push_back(std::move(one));
  }
}

}  // namespace

std::string_view name_of(Role role) noexcept {
  switch (role) {
    case Role::when: return "when";
    case Role::batch: return "batch";
    case Role::transfer: return "transfer";
    case Role::compression: return "compression";
    case Role::collective: return "collective";
    case Role::learning_rate: return "learning_rate";
  }
  return "unknown";
}

std::string name_of(const ControllerEntry& controller) {
  return std::string(name_of(controller.role)) + "/" + std::string(controller.name);
}

const std::vector<double>* memory_of(const PolicyState& state, const ControllerEntry& controller) {
  for (const ControllerMemory& own : state.memory)
    if (own.name == name_of(controller)) return &own.values;
  return nullptr;
}

Result<Controllers> controllers_of(const PolicyConfig& config,
                                   std::span<const ControllerEntry* const> catalog) {
  Controllers all;
  const ControllerEntry* when = find(catalog, Role::when, config.sync_policy);
  if (when == nullptr)
    return Error{ErrorCode::invalid_config,
                 "sync.policy \"" + config.sync_policy + "\" is not in this build"};
  all.push_back(when);
  const ControllerEntry* batch = find(catalog, Role::batch, config.batch_policy);
  if (batch == nullptr)
    return Error{ErrorCode::invalid_config,
                 "batch.policy \"" + config.batch_policy + "\" is not in this build"};
  all.push_back(batch);
  if (config.transfer_policy != "none") {
    const auto* transfer = find(catalog, Role::transfer, config.transfer_policy);
    if (transfer == nullptr)
      return Error{ErrorCode::invalid_config,
                   "inject.policy \"" + config.transfer_policy + "\" is not in this build"};
    all.push_back(transfer);
  }
  if (!leaves_compression_to_when(config) && config.compression_policy != "none") {
    const auto* compression = find(catalog, Role::compression, config.compression_policy);
    if (compression == nullptr)
      return Error{ErrorCode::invalid_config,
                   "compression.policy \"" + config.compression_policy + "\" is not in this build"};
    all.push_back(compression);
  }
  // The collective is either configured by name or chosen by a controller.
  if (const auto* collective = find(catalog, Role::collective, config.collective)) all.push_back(collective);
  if (config.learning_rate_policy == "none") return all;
  const auto* learning_rate = find(catalog, Role::learning_rate, config.learning_rate_policy);
  if (learning_rate == nullptr)
    return Error{ErrorCode::invalid_config,
                 "train.lr_schedule.policy \"" + config.learning_rate_policy + "\" is not in this build"};
  all.push_back(learning_rate);
  return all;
}

const PolicySetting& setting(const PolicyConfig& config, std::string_view key) {
  for (const PolicySetting& one : config.settings)
    if (one.name == key) return one;
  RIVULET_CHECK(false, "unknown setting");
}

Settings compressor_settings(const PolicyConfig& config, const CompressorEntry& compressor) {
  Settings all;
  for (const Key& key : compressor.keys) {
    const PolicySetting& one = setting(config, key.name);
    switch (key.type) {
      case KeyType::text: all.set(one.name, one.text); break;
      case KeyType::integer: all.set(one.name, static_cast<std::int64_t>(one.number)); break;
      case KeyType::number: all.set(one.name, one.number); break;
      case KeyType::boolean: all.set(one.name, one.number != 0); break;
      case KeyType::duration: all.set(one.name, from_seconds(one.number)); break;
      case KeyType::texts:
      case KeyType::integers:
      case KeyType::numbers: RIVULET_CHECK(false, "a key of a compressor takes one value");
    }
  }
  return all;
}

std::vector<PolicySetting> settings_of(const PolicyConfig& config, const Settings& settings) {
  std::vector<PolicySetting> all;
  for (const ControllerEntry* controller : builtin_controllers())
    if (controller->name == name_for(config, controller->role)) add_settings(controller->keys, settings, all);
  if (config.compression_policy != "none")
    for (const CompressorEntry* compressor : builtin_compressors())
      add_settings(compressor->keys, settings, all);
  return all;
}

Status check_policy(const PolicyConfig& config, const Controllers& controllers, const PolicyState& state) {
  const auto bad = [](const std::string& what) { return Error{ErrorCode::bad_record, what}; };
  for (const ControllerEntry* controller : controllers)
    if (auto fits = check_settings(controller->keys, config); !fits) return fits;
  if (config.compression_policy != "none")
    for (const CompressorEntry* compressor : builtin_compressors())
      if (auto fits = check_settings(compressor->keys, config); !fits) return fits;
  constexpr std::uint64_t most = std::uint64_t{1} << 40U;
  std::uint64_t parameters = 0;
  for (const std::uint64_t tensor : config.tensors) parameters += std::min(tensor, most);
  const bool shaped = parameters > 0 && parameters <= most && config.buffers <= most;
  if (config.compression_policy != "none" && !shaped) return bad("compression needs a model with parameters");
  const std::vector<std::string> members(std::max<std::size_t>(1, state.last.next.rows.size()));
  const auto fresh = first_state(members, config, controllers).memory;
  const auto alike = [](const ControllerMemory& a, const ControllerMemory& b) {
    return a.name == b.name && a.values.size() == b.values.size() && a.devices.size() == b.devices.size();
  };
  if (!std::ranges::equal(state.memory, fresh, alike))
    return bad("the memory was saved by different controllers, or by a different version");
  for (const ControllerMemory& own : state.memory)
    if (!std::ranges::all_of(own.values, [](double value) { return std::isfinite(value); }))
      return bad("memory of " + own.name + " has a non-finite value");
  return ok();
}

bool exchanges_deltas(const PolicyConfig& config, std::span<const ControllerEntry* const> catalog) {
  return std::ranges::any_of(catalog, [&](const ControllerEntry* one) {
    return one->contributes_deltas != nullptr && one->name == name_for(config, one->role) &&
           one->contributes_deltas(config);
  });
}

ContributionShape shape_of(const PolicyConfig& config) {
  return {config.number_bytes == 8 ? Scalar::f64 : Scalar::f32,
          {config.tensors.begin(), config.tensors.end()},
          config.buffers,
          {config.tensor_rows.begin(), config.tensor_rows.end()}};
}

const ControllerEntry* controller_named(Role role, std::string_view name) noexcept {
  return find(builtin_controllers(), role, name);
}

const AggregationEntry* collective_named(std::string_view name) noexcept {
  for (const AggregationEntry* entry : builtin_aggregations())
    if (entry->name == name) return entry;
  return nullptr;
}

const CompressorEntry* compressor_named(std::string_view name) noexcept {
  for (const CompressorEntry* entry : builtin_compressors())
    if (entry->name == name) return entry;
  return nullptr;
}

const CompressorEntry& usual_compressor(SlotKind kind) noexcept {
  for (const CompressorEntry* entry : builtin_compressors())
    if (entry->usual && entry->kind() == kind) return *entry;
  RIVULET_CHECK(false, "no default compressor has this slot kind");
}

bool can_sum(const AggregationEntry& how, const CompressorEntry& compressor) {
  return how.fits == nullptr || how.fits(compressor);
}

const AggregationEntry& gathers_all() noexcept {
  for (const AggregationEntry* entry : builtin_aggregations())
    if (entry->stands_in && entry->fits == nullptr) return *entry;
  RIVULET_CHECK(false, "no collective can sum all slots");
}

const AggregationEntry& stand_in_for(const CompressorEntry& compressor) noexcept {
  for (const AggregationEntry* entry : builtin_aggregations())
    if (entry->stands_in && entry->fits != nullptr && entry->fits(compressor)) return *entry;
  return gathers_all();
}

bool chooses_collective(const PolicyConfig& config) {
  return collective_named(config.collective) == nullptr &&
         find(builtin_controllers(), Role::collective, config.collective) != nullptr;
}

std::size_t measurements_of(const Controllers& controllers) {
  std::size_t numbers = 0;
  for (const ControllerEntry* controller : controllers)
    for (const FactField& field : controller->fact_fields) numbers += field.count;
  return numbers;
}

}  // namespace rivulet::sync::policy
