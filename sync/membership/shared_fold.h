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

/// One fold of a job's control log for all who read it in this process: equal prefixes, equal folds, so one
/// is enough. One that reads on reads on for all of them; what each device wrote itself waits for it until it
/// reads. A device alone in its process has one of its own. Thread-safe; references to fold() are read under
/// the lock of guard() by threads other than the reader.
class SharedFold {
 public:
  using Said = std::pair<std::int64_t, ControlRecord>;  ///< offset, record

  /// One device's place. The fold must outlive it.
  class Reader {
   public:
    Reader(SharedFold& fold, std::string device);
    ~Reader();
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    /// Reads what is there, a bounded part of it at a time. Errors: those of OrderedLog::poll(); what was
    /// read before one counts.
    Status read();
    /// What this device wrote and was read since the last call, whether it counted or not.
    std::vector<Said> take_own();

   private:
    friend class SharedFold;
    SharedFold& fold_;
    const std::string device_;
    std::vector<Said> own_;  ///< under the lock
  };

  /// `log` is lent.
  SharedFold(OrderedLog& log, std::string job, const Rules& rules)
      : log_(log), reader_(std::move(job), rules) {}
  SharedFold(const SharedFold&) = delete;
  SharedFold& operator=(const SharedFold&) = delete;

  [[nodiscard]] const LogReader& reader() const noexcept { return reader_; }
  [[nodiscard]] const Fold& fold() const noexcept { return reader_.fold(); }
  /// As of the last read(), made once for each length of the log. For the reader.
  const NextView& next_view(bool only_live, std::uint32_t wanted);
  /// Every member of the closed view is in it and stays. Same.
  bool view_stands();
  [[nodiscard]] std::unique_lock<std::mutex> guard() const { return std::unique_lock(mutex_); }

 private:
  Status read();
  void take(const LogEntry& entry);

  OrderedLog& log_;
  mutable std::mutex mutex_;
  LogReader reader_;
  struct Known {
    std::int64_t next_offset = -1;
    std::uint32_t wanted = 0;
    NextView view;
  };
  Known ready_, live_;
  std::pair<std::int64_t, bool> next_offsets_{-1, false};     ///< by next_offset
  std::multimap<std::string, Reader*, std::less<>> readers_;  ///< by device: two lives of it may overlap
};

}  // namespace rivulet::sync::membership
