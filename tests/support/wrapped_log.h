#pragma once
#include <memory>

#include "core/log.h"

namespace rivulet::testing {

/// Forwards to another log; tests override single functions.
struct WrappedLog : OrderedLog {
  explicit WrappedLog(std::unique_ptr<OrderedLog> log) : inner(std::move(log)) {}
  Status append(std::span<const std::byte> bytes) override { return inner->append(bytes); }
  Result<std::span<const LogEntry>> poll(std::size_t max) override { return inner->poll(max); }
  [[nodiscard]] bool caught_up() const override { return inner->caught_up(); }
  std::unique_ptr<OrderedLog> inner;
};

}  // namespace rivulet::testing
