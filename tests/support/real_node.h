#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "core/clock.h"
#include "runtime/node/node.h"
#include "runtime/process/runner.h"
#include "stream/source.h"
#include "sync/transport/transport.h"
#include "tests/support/parts/parts.h"

namespace rivulet::testing {

/// One device of a group on real threads and a real clock, with the product's Node. The test supplies source,
/// log and transport.
class RealNode {
 public:
  struct Outside {
    std::unique_ptr<stream::RecordSource> source;
    std::unique_ptr<devices::Device> device;  ///< null = the host
    std::unique_ptr<OrderedLog> log;
    sync::Connect connect;
    std::unique_ptr<runtime::DecisionLog> decisions;  ///< null = none
    bool snapshots = false;                           ///< enables requests for the model
    sync::membership::Rules rules = {};
  };
  /// Builds it, or fails the test with the reason.
  RealNode(const runtime::LoadedConfig& loaded, const runtime::RunOptions& options,
           const runtime::Catalog& catalog, const Clock& clock, Outside outside);
  ~RealNode();
  RealNode(const RealNode&) = delete;
  RealNode& operator=(const RealNode&) = delete;

  void start();
  /// First half of start(), for tests that compare bits: a first round in which a device has no rows shifts
  /// all later ones. Waits until `rows` rows are in the buffer; fails the test at the deadline.
  void read(std::uint64_t rows);
  void train();
  /// Returns true if the worker ended within `deadline`; then both threads are joined.
  bool wait(Duration deadline);
  /// As SIGTERM: finishes the round and leaves.
  void leave();
  [[nodiscard]] bool ended() const;
  [[nodiscard]] std::int64_t ingest_beat_ns() const { return ingest_thread_.beat_ns(); }
  [[nodiscard]] std::int64_t train_beat_ns() const { return train_thread_.beat_ns(); }
  runtime::Node& node() { return *node_; }
  runtime::StopRequest& stop_request() { return stop_; }

 private:
  const Clock& clock_;
  NullMetrics metrics_;
  std::unique_ptr<runtime::Logger> log_ = runtime::make_null_logger();
  runtime::StopRequest stop_{0};
  runtime::ThreadRunner ingest_thread_;
  runtime::ThreadRunner train_thread_;
  std::unique_ptr<runtime::Node> node_;
};

/// `loaded` for device i of its group: id "device-0i", partition i of its first topic.
runtime::LoadedConfig config_of_device(const runtime::LoadedConfig& loaded, std::size_t device);

/// Records of one partition, all due immediately: `records` values from make(i).
std::unique_ptr<stream::RecordSource> prepared_source(
    std::size_t device, std::size_t records, const std::function<std::vector<std::byte>(std::size_t)>& make,
    const Clock& clock);

/// Raw f32 rows (label, features) that a linear model can learn; a function of device, seed and index.
std::vector<std::byte> linear_row(std::uint64_t seed, std::size_t device, std::size_t index,
                                  std::size_t columns, std::uint32_t classes);
std::unique_ptr<stream::RecordSource> linear_source(const runtime::Config& config, std::size_t device,
                                                    std::size_t records, const Clock& clock);

}  // namespace rivulet::testing
