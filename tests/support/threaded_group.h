#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "runtime/decisions/decision_log.h"
#include "runtime/node/catalog.h"
#include "runtime/node/node.h"

namespace rivulet::testing {

/// Overrides for the defaults of a threaded group.
struct ThreadedParts {
  runtime::Catalog catalog = runtime::builtin_catalog();
  /// Transport of device i; null = one in-memory network.
  std::function<sync::Connect(std::size_t device, const Clock& clock)> connect;
  /// Decision log of device i; null = none.
  std::function<std::unique_ptr<runtime::DecisionLog>(std::size_t device)> decisions;
  double rows_per_second = 2000;  ///< of each device's synthetic stream
};

/// The nodes of one job in this process, as in production: real clock, one thread per agent, two threads per
/// device. The control log is in memory. Used under sanitizers.
class ThreadedGroup {
 public:
  /// Builds it, or ends the program with the reason.
  ThreadedGroup(const runtime::LoadedConfig& loaded, const runtime::StopAfter& stop_after,
                ThreadedParts parts);
  ~ThreadedGroup();
  ThreadedGroup(const ThreadedGroup&) = delete;
  ThreadedGroup& operator=(const ThreadedGroup&) = delete;

  /// Runs until every worker has ended, and joins all threads; false after the deadline.
  bool run(Duration deadline);
  [[nodiscard]] std::size_t size() const noexcept;
  runtime::Node& node(std::size_t device);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// `make_gloo_connect` on loopback, for ThreadedParts::connect.
sync::Connect loopback_gloo(const Clock& clock);

}  // namespace rivulet::testing
