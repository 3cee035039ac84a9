#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sync/compressor/compressor.h"

namespace rivulet::sync {

/// The compressors of one device, each made when it is first asked for. What a compressor keeps (its
/// residual) is the device's own: it outlives the views that lend it, and a view that fails leaves it as it
/// was (architecture §4). Owner: the worker; the train thread only.
class CompressorCache {
 public:
  explicit CompressorCache(std::span<const CompressorEntry* const> entries) : entries_(entries) {}
  struct Item {
    Compressor* compressor = nullptr;
    const CompressorEntry* entry = nullptr;
  };
  /// The compressor of that name; the name must be in the catalog.
  Item find(std::string_view name);

 private:
  std::span<const CompressorEntry* const> entries_;
  std::map<std::string, std::unique_ptr<Compressor>, std::less<>> made_;
};

}  // namespace rivulet::sync
