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

/// Maximum memory that one part of the program uses.
struct MemoryPart {
  std::string_view name;  ///< "row_buffer"; label of memory_planned_bytes
  double bytes = 0;       ///< may exceed any real memory, never negative
  std::string_view key;   ///< key that lowers it
};

/// Limits of librdkafka's consumer, used for properties that the user has not set.
struct ClientQueue {
  std::uint64_t bytes = 0;     ///< bytes of queued records
  std::uint64_t messages = 0;  ///< number of queued records
  std::uint64_t fetch = 0;     ///< bytes of one broker response
};

/// The budget of device.memory, computed before allocation: row buffer, client queue, batch, payloads of
/// every peer, states with copies and images, the model's own needs. Not included: the program and its
/// libraries (about 170 MB with LibTorch), sockets, and decompressed batches of a broker.
struct MemoryPlan {
  std::vector<MemoryPart> parts;
  double cap = 0;  ///< device.memory
  ClientQueue queue;
  std::size_t held_out_rows = 0;  ///< maximum kept

  [[nodiscard]] double total() const;
  [[nodiscard]] bool fits() const { return total() <= cap; }
  [[nodiscard]] double bytes_of(std::string_view part) const;  ///< 0 if unknown
  /// "312.4 MiB of device.memory = 1.0 GiB".
  [[nodiscard]] std::string text() const;
  /// Returns a line per part, the largest first, with the key that lowers it, and the sum.
  [[nodiscard]] std::string table() const;
  /// Errors: invalid_config (the plan exceeds device.memory; the message includes the table).
  [[nodiscard]] Status check() const;
  /// Returns properties for the consumer of rows. Place them before the user's, which take precedence.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> client_properties() const;
  /// The same for the consumer of the control topic.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> log_properties() const;
  void publish(MetricsSink& metrics) const;
};

/// Inputs of the plan other than the configuration.
struct MemoryNeeds {
  RowShape rows;
  devices::ModelLayout layout;
  devices::ModelNeeds model;
  std::uint64_t file_bytes = 0;      ///< records of source.type = "file"
  std::size_t held_out_rows = 0;     ///< number of held-out rows; 0 if not evaluated during training
  std::uint64_t held_out_bytes = 0;  ///< bytes of held-out records, in memory during decoding
};
/// Pure. The client queue gets memory for about 2 s of the fastest stream that batch.* can use, or less if
/// the other parts leave less.
MemoryPlan plan_memory(const Config& config, const MemoryNeeds& needs);

/// Determines the needs by a trial: builds the decoder, reads the files kept in memory, and builds the model
/// if it may fit; then releases them. A value above 0 in `stop` cancels the trial. Errors: invalid_config,
/// unavailable (LibTorch), io (files kept in memory), cancelled.
Result<MemoryPlan> plan_memory(const Config& config, const Catalog& catalog,
                               const StopRequest* stop = nullptr);

}  // namespace rivulet::runtime
