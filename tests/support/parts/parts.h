#pragma once
#include "runtime/node/catalog.h"

/// The test-only parts of this folder. Each is one file, found by the build like the product's.
namespace rivulet::stream {
std::span<const DecoderEntry* const> part_decoders() noexcept;
}
namespace rivulet::devices {
std::span<const ModelEntry* const> part_models() noexcept;
std::span<const OptimizerEntry* const> part_optimizers() noexcept;
}  // namespace rivulet::devices
namespace rivulet::sync::policy {
std::span<const ControllerEntry* const> part_controllers() noexcept;
}
namespace rivulet::sync {
std::span<const CompressorEntry* const> part_compressors() noexcept;
std::span<const AggregationEntry* const> part_aggregations() noexcept;
}  // namespace rivulet::sync

namespace rivulet::testing {

/// The product's catalog followed by the parts of this folder. Owns the lists; must outlive the nodes.
class PartsCatalog {
 public:
  PartsCatalog();
  [[nodiscard]] runtime::Catalog catalog() const;
  /// Adds a model or a decoder of the test.
  void add(const devices::ModelEntry& model) { models_.push_back(&model); }
  void add(const stream::DecoderEntry& decoder) { decoders_.push_back(&decoder); }
  /// Replaces the part of the same name.
  void replace(const sync::AggregationEntry& aggregation);
  void replace(const devices::ModelEntry& model);
  void replace(const devices::OptimizerEntry& optimizer);

 private:
  std::vector<const stream::DecoderEntry*> decoders_;
  std::vector<const devices::ModelEntry*> models_;
  std::vector<const devices::OptimizerEntry*> optimizers_;
  std::vector<const sync::policy::ControllerEntry*> controllers_;
  std::vector<const sync::CompressorEntry*> compressors_;
  std::vector<const sync::AggregationEntry*> aggregations_;
};

}  // namespace rivulet::testing
