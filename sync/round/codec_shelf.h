#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "sync/codec/codec.h"

namespace rivulet::sync {

/// The codecs of one device, each made when it is first asked for. What a codec keeps (its residual) is the
/// device's own: it outlives the views that lend it, and a view that fails leaves it as it was (architecture
/// §4). Owner: the worker; the train thread only.
class CodecShelf {
 public:
  explicit CodecShelf(std::span<const CodecEntry* const> entries) : entries_(entries) {}
  struct Item {
    Codec* codec = nullptr;
    const CodecEntry* entry = nullptr;
  };
  /// The codec of that name; the name must be in the catalog.
  Item find(std::string_view name);

 private:
  std::span<const CodecEntry* const> entries_;
  std::map<std::string, std::unique_ptr<Codec>, std::less<>> made_;
};

}  // namespace rivulet::sync
