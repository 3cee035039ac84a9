#include <algorithm>

#include "devices/optimizer.h"
#include "devices/trainer.h"
#include "runtime/config/config.h"
#include "stream/decoder.h"
#include "sync/collective/aggregation.h"
#include "sync/policy/controller.h"

namespace rivulet::runtime {

namespace {

template <class Entries>
std::vector<std::string> names_of(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto* entry : entries) names.emplace_back(entry->name);
  return names;
}

std::vector<std::string> controllers(sync::policy::Role role, std::vector<std::string> names = {}) {
  for (const auto* entry : sync::policy::builtin_controllers())
    if (entry->role == role && std::ranges::find(names, entry->name) == names.end())
      names.emplace_back(entry->name);
  return names;
}

}  // namespace

CatalogNames builtin_catalog_names() {
  using sync::policy::Role;
  return {names_of(stream::builtin_decoders()),
          names_of(devices::builtin_models()),
          controllers(Role::batch),
          names_of(devices::builtin_optimizers()),
          controllers(Role::compression, {"none", std::string(sync::policy::decided_jointly)}),
          names_of(sync::builtin_compressors()),
          controllers(Role::when),
          controllers(Role::learning_rate),
          controllers(Role::transfer, {"none"}),
          controllers(Role::collective, names_of(sync::builtin_aggregations()))};
}

}  // namespace rivulet::runtime
