#include "sync/policy/controller.h"

namespace rivulet::sync::policy {
namespace {

const ControllerEntry* find(std::span<const ControllerEntry* const> catalog, Role role,
                            std::string_view name) {
  for (const ControllerEntry* entry : catalog)
    if (entry->role == role && entry->name == name) return entry;
  return nullptr;
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

Result<Controllers> controllers_of(const PolicyConfig& config,
                                   std::span<const ControllerEntry* const> catalog) {
  Controllers all;
  const ControllerEntry* batch = find(catalog, Role::batch, config.batch_policy);
  if (batch == nullptr)
    return Error{ErrorCode::invalid_config,
                 "batch.policy \"" + config.batch_policy + "\" is not in this build"};
  all.push_back(batch);
  // A collective may be named, or chosen by a controller.
  if (const auto* collective = find(catalog, Role::collective, config.collective)) all.push_back(collective);
  return all;
}

std::size_t measurements_of(const Controllers& controllers) {
  std::size_t numbers = 0;
  for (const ControllerEntry* controller : controllers)
    for (const FactField& field : controller->fact_fields) numbers += field.count;
  return numbers;
}

}  // namespace rivulet::sync::policy
