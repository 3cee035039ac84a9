#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/wake.h"
#include "sync/transport/transport.h"

/// Further parts of a rank of the in-memory transport, for tests that advance the clock themselves.
namespace rivulet::testing {

/// An empty address book.
struct NoAddresses final : sync::AddressBook {
  Status set(std::uint64_t, const std::string&, std::span<const std::byte>) override { return ok(); }
  std::vector<std::byte> get(std::uint64_t, const std::string&, bool& found) override {
    found = false;
    return {};
  }
};

/// Records the number of calls and the last requested time.
struct LastCall final : Wake {
  void notify() noexcept override { ++now; }
  void notify_at(TimePoint at) noexcept override { next = at; }
  int now = 0;
  TimePoint next{};
};

inline TimePoint at(Duration since_start) {
  return TimePoint(since_start);
}

}  // namespace rivulet::testing
