#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "sync/membership/describe.h"
#include "sync/membership/log_reader.h"

namespace rivulet::sync::membership {

/// One fold of a job's control log for all devices in this process, since equal prefixes give equal folds.
/// Each read advances it for all; records of a device are kept until that device reads. A single device has a
/// private one. Thread-safe: threads other than the reader must hold guard() to use fold().
class SharedFold {
 public:
  using Announced = std::pair<std::int64_t, ControlRecord>;  ///< offset, record

  /// One device's reader. The fold must outlive it.
  class Reader {
   public:
    Reader(SharedFold& fold, std::string device);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    /// Reads available records in bounded batches. Errors: those of OrderedLog::poll(); records read before
    /// an error count.
    Status read();
    /// Records of this device read since the last call, whether they counted or not.
    std::vector<Announced> take_own();

   private:
    friend class SharedFold;
    SharedFold& fold_;
    const std::string device_;
    std::vector<Announced> own_;  ///< under the lock
  };

  /// Borrows `log`.
  SharedFold(OrderedLog& log, std::string job, const Rules& rules)
      : log_(log), reader_(std::move(job), rules) {}
  SharedFold(const SharedFold&) = delete;
  SharedFold& operator=(const SharedFold&) = delete;

  [[nodiscard]] const LogReader& reader() const noexcept { return reader_; }
  [[nodiscard]] const Fold& fold() const noexcept { return reader_.fold(); }
  /// Next view as of the last read(), cached by log length. Only for the reader.
  const NextView& next_view(bool only_live, const GroupSizes& sizes);
  /// Whether every member of the closed view is still in it and stays. Only for the reader.
  bool view_valid();
  [[nodiscard]] std::unique_lock<std::mutex> guard() const { return std::unique_lock(mutex_); }

 private:
  Status read();
  void take(const LogEntry& entry);

  OrderedLog& log_;
  mutable std::mutex mutex_;
  LogReader reader_;
  struct Known {
    std::int64_t next_offset = -1;
    GroupSizes sizes;
    NextView view;
  };
  Known ready_, live_;
  std::pair<std::int64_t, bool> next_offsets_{-1, false};     ///< next_offset and its result of view_valid()
  std::multimap<std::string, Reader*, std::less<>> readers_;  ///< by device: two sessions may overlap
};

}  // namespace rivulet::sync::membership
