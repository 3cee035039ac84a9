#pragma once
#include <string>

#include "core/result.h"

namespace rivulet::runtime {

/// Owner of a data directory.
struct DataOwner {
  std::string job;
  std::string device;  ///< empty = any device of the job, for maintenance of a stopped device
  bool operator==(const DataOwner&) const = default;
};

/// The only folder a device writes to (device.data_dir). It belongs to the device and job that claimed it
/// first. A different device would overwrite, delete or wrongly trust its states, decisions and anchors. One
/// process at a time may lock it. The lock is released with this object, or when the process exits for any
/// reason.
class DataDir {
 public:
  DataDir() = default;
  ~DataDir();
  DataDir(const DataDir&) = delete;
  DataDir& operator=(const DataDir&) = delete;
  /// Creates the folder if missing and locks it. Call once. Writes nothing into a folder that belongs to
  /// another job or device. Errors: invalid_config (names the other owner; cannot be created or written;
  /// locked by another process).
  Status take(const std::string& path, const DataOwner& owner);
  /// Marks the folder as owned by this device. The mark is durable on return. Call after take(). Errors:
  /// invalid_config (cannot be written).
  Status claim();

 private:
  int lock_ = -1;
  std::string path_;
  DataOwner owner_;
};

/// Checks the owner of the folder without writing to it. Errors: invalid_config (the folder belongs to
/// another job or device, or its mark is unreadable).
Status check_owner(const std::string& path, const DataOwner& owner);

}  // namespace rivulet::runtime
