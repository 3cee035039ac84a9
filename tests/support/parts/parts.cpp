#include "tests/support/parts/parts.h"

namespace rivulet::testing {
namespace {

template <class Entry>
std::vector<const Entry*> both(std::span<const Entry* const> a, std::span<const Entry* const> b) {
  std::vector<const Entry*> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

}  // namespace

PartsCatalog::PartsCatalog()
    : decoders_(both(stream::builtin_decoders(), stream::part_decoders())),
      models_(both(devices::builtin_models(), devices::part_models())),
      optimizers_(both(devices::builtin_optimizers(), devices::part_optimizers())),
      controllers_(both(sync::policy::builtin_controllers(), sync::policy::part_controllers())),
      compressors_(both(sync::builtin_compressors(), sync::part_compressors())),
      aggregations_(both(sync::builtin_aggregations(), sync::part_aggregations())) {}

void PartsCatalog::replace(const sync::AggregationEntry& aggregation) {
  for (auto& entry : aggregations_)
    if (entry->name == aggregation.name) entry = &aggregation;
}

void PartsCatalog::replace(const devices::ModelEntry& model) {
  for (auto& entry : models_)
    if (entry->name == model.name) entry = &model;
}

void PartsCatalog::replace(const devices::OptimizerEntry& optimizer) {
  for (auto& entry : optimizers_)
    if (entry->name == optimizer.name) entry = &optimizer;
}

runtime::Catalog PartsCatalog::catalog() const {
  return {decoders_, models_, optimizers_, {controllers_, compressors_, aggregations_}};
}

}  // namespace rivulet::testing
