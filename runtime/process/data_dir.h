#pragma once
#include <string>

#include "core/result.h"

namespace rivulet::runtime {

/// The only folder a device writes to (device.data_dir). One process at a time: two would overwrite each
/// other's state and decisions. The hold ends with this object, and with the process however it ends.
class DataDir {
 public:
  DataDir() = default;
  ~DataDir();
  DataDir(const DataDir&) = delete;
  DataDir& operator=(const DataDir&) = delete;
  /// Makes the folder where it is missing and holds it. Once. Errors: invalid_config (cannot be made or
  /// written; another process holds it).
  Status take(const std::string& path);

 private:
  int lock_ = -1;
};

}  // namespace rivulet::runtime
