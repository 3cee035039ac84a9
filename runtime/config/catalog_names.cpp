#include "devices/optimizer.h"
#include "devices/trainer.h"
#include "runtime/config/config.h"
#include "stream/decoder.h"
#include "sync/policy/controller.h"

namespace rivulet::runtime {

namespace {

template <class Entries>
std::vector<std::string> names_of(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto* entry : entries) names.emplace_back(entry->name);
  return names;
}

std::vector<std::string> batch_policies() {
  std::vector<std::string> names;
  for (const auto* entry : sync::policy::builtin_controllers())
    if (entry->role == sync::policy::Role::batch) names.emplace_back(entry->name);
  return names;
}

}  // namespace

CatalogNames builtin_catalog_names() {
  return {names_of(stream::builtin_decoders()), names_of(devices::builtin_models()), batch_policies(),
          names_of(devices::builtin_optimizers())};
}

}  // namespace rivulet::runtime
