#pragma once
#include <string>

#include "core/result.h"

namespace rivulet::runtime {

/// Whose a folder is.
struct DataOwner {
  std::string job;
  std::string device;  ///< empty: any of the job's, for who looks after one that does not run
  bool operator==(const DataOwner&) const = default;
};

/// The only folder a device writes to (device.data_dir). It belongs to the device of the job that claimed it
/// first: states, decisions and anchors of another would be overwritten, removed or believed. One process at
/// a time: two would do so to each other. The hold ends with this object, and with the process however it
/// ends.
class DataDir {
 public:
  DataDir() = default;
  ~DataDir();
  DataDir(const DataDir&) = delete;
  DataDir& operator=(const DataDir&) = delete;
  /// Makes the folder where it is missing and holds it. Once. In a folder of another job or device nothing is
  /// written. Errors: invalid_config (another's, names whose; cannot be made or written; another process
  /// holds it).
  Status take(const std::string& path, const DataOwner& owner);
  /// The folder is this device's from now on, on the disk when it returns. After take(). Errors:
  /// invalid_config (cannot be written).
  Status claim();

 private:
  int lock_ = -1;
  std::string path_;
  DataOwner owner_;
};

/// Reads only. Errors: invalid_config (the folder belongs to another job or device, or its mark cannot be
/// read).
Status check_owner(const std::string& path, const DataOwner& owner);

}  // namespace rivulet::runtime
