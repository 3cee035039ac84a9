#pragma once
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/clock.h"
#include "core/row.h"
#include "devices/device.h"
#include "runtime/config/config.h"
#include "runtime/node/catalog.h"
#include "stream/decoder.h"
#include "stream/source.h"

namespace rivulet::runtime {

/// The recorded stream of one partition.
struct ReplayStream {
  std::unique_ptr<VirtualClock>
      clock;  ///< of a source that waits for it: advanced when no record is due; or null
  std::unique_ptr<stream::RecordSource> source;
};
/// Opens a partition at an offset or before it. Errors: unavailable, io (named in the message).
using OpenReplayStream = std::function<Result<ReplayStream>(PartitionId, std::int64_t offset)>;

/// Space for the rows of one batch, in device memory.
class ReplayBatch {
 public:
  static Result<ReplayBatch> create(const RowShape& shape, std::size_t rows_max, devices::Device& device);
  void clear() noexcept { rows_ = 0; }
  [[nodiscard]] bool full() const noexcept { return rows_ == tags_.size(); }
  /// Destination of the next row. A full batch still has a slot to decode into, but not to keep.
  [[nodiscard]] RowSlot slot() const noexcept;
  void keep() noexcept { ++rows_; }
  [[nodiscard]] BatchView view() const noexcept;

 private:
  std::unique_ptr<devices::Memory> memory_;
  std::span<float> features_;
  std::span<float> targets_;
  std::size_t columns_ = 0;
  std::size_t targets_per_row_ = 0;
  std::vector<RowTag> tags_;  ///< [rows_max]; unused by trainers
  std::size_t rows_ = 0;
};

/// Reads the rows of recorded intervals again, through the configured decoder. Keeps one record per partition
/// in memory. Owner: one thread.
class ReplayRows {
 public:
  ReplayRows(const Config& config, const Catalog& catalog, OpenReplayStream open)
      : config_(config), catalog_(catalog), open_(std::move(open)) {}
  /// Appends the trained rows of an interval to `batch`, in order. `runs`: the skipped ranges. `most`:
  /// maximum of this call; the next call for the interval continues. Errors: unavailable (an offset was
  /// deleted), bad_record (more rows than the batch can take).
  Status take(const RowInterval& rows, std::span<const SkippedRange> runs, ReplayBatch& batch,
              std::size_t most = std::numeric_limits<std::size_t>::max());

 private:
  struct Reader {
    ReplayStream stream;
    std::unique_ptr<stream::Decoder> decoder;
    RowCursor at;                     ///< all rows below are done
    std::optional<RowCursor> inside;  ///< start of the interval in progress
    const Record* record = nullptr;
    std::uint32_t row = 0;  ///< next row of the record
    bool begun = false;     ///< the decoder has the record
  };
  Result<Reader*> reader_at(const PartitionId& partition, const RowCursor& first);
  Status fetch(const PartitionId& partition, Reader& reader) const;
  [[nodiscard]] std::string name_of(const PartitionId& partition) const;

  const Config& config_;
  const Catalog catalog_;
  const OpenReplayStream open_;
  std::map<PartitionId, Reader> readers_;
};

}  // namespace rivulet::runtime
