#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/metrics.h"
#include "core/result.h"
#include "core/row.h"
#include "devices/trainer.h"
#include "runtime/config/config.h"
#include "runtime/node/catalog.h"
#include "runtime/node/run.h"

namespace rivulet::runtime {

/// One thing that memory goes to, at most.
struct MemoryPart {
  std::string_view name;  ///< "row_buffer"; the label of memory_planned_bytes
  double bytes = 0;       ///< a sum may be far beyond any memory, never negative
  std::string_view key;   ///< what makes it smaller
};

/// What librdkafka's reader may keep, for properties that the user has not set.
struct ClientQueue {
  std::uint64_t bytes = 0;     ///< of records that wait in it
  std::uint64_t messages = 0;  ///< that wait in it
  std::uint64_t fetch = 0;     ///< of one answer of a broker
};

/// device.memory as a sum, made before anything of it is allocated: slab, client queue, batch, payloads of
/// every peer, states and their copies and images, what the model takes besides. The program and its
/// libraries (about 170 MB with LibTorch) come on top, as do sockets and decompressed batches of a broker.
struct MemoryPlan {
  std::vector<MemoryPart> parts;
  double cap = 0;  ///< device.memory
  ClientQueue queue;
  std::size_t held_out_rows = 0;  ///< kept at most

  [[nodiscard]] double total() const;
  [[nodiscard]] bool fits() const { return total() <= cap; }
  [[nodiscard]] double bytes_of(std::string_view part) const;  ///< 0 for an unknown one
  /// "312.4 MiB of device.memory = 1.0 GiB".
  [[nodiscard]] std::string text() const;
  /// A line per part, the largest first, with the key that lowers it, and the sum.
  [[nodiscard]] std::string table() const;
  /// Errors: invalid_config (does not fit; with the table).
  [[nodiscard]] Status check() const;
  /// The reader's properties, in front of the user's own, which win.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> client_properties() const;
  /// The same for the reader of the control topic.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> log_properties() const;
  void publish(MetricsSink& metrics) const;
};

/// What the sum is made of besides the configuration.
struct MemoryNeeds {
  RowShape rows;
  devices::ModelLayout layout;
  devices::ModelNeeds model;
  std::uint64_t file_bytes = 0;      ///< of the records of source.type = "file"
  std::size_t held_out_rows = 0;     ///< 0: nobody evaluates while it trains
  std::uint64_t held_out_bytes = 0;  ///< of their records, in memory while they are decoded
};
/// Pure. The client's queue gets about 2 s of the fastest stream that batch.* can use, and less where the
/// others leave less.
MemoryPlan plan_memory(const Config& config, const MemoryNeeds& needs);

/// Finds the needs out: makes the decoder, reads the files that are kept in memory, and makes the model, if
/// it may fit at all, and lets them go. Above 0 `stop` ends it. Errors: invalid_config, unavailable
/// (LibTorch), io (those files), cancelled.
Result<MemoryPlan> plan_memory(const Config& config, const Catalog& catalog,
                               const StopRequest* stop = nullptr);

}  // namespace rivulet::runtime
