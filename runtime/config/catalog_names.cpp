#include "devices/optimizer.h"
#include "devices/trainer.h"
#include "runtime/config/config.h"
#include "stream/decoder.h"
#include "sync/policy/plan.h"

namespace rivulet::runtime {

namespace {

template <class Entries>
std::vector<std::string> names_of(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto* entry : entries) names.emplace_back(entry->name);
  return names;
}

}  // namespace

CatalogNames builtin_catalog_names() {
  return {names_of(stream::builtin_decoders()), names_of(devices::builtin_models()),
          names_of(sync::policy::builtin_policies()), names_of(devices::builtin_optimizers())};
}

}  // namespace rivulet::runtime
