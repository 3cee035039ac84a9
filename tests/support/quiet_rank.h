#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/wake.h"
#include "sync/transport/transport.h"

/// What a rank of in-memory wires needs beside its clock, for tests that move the clock by hand.
namespace rivulet::testing {

/// Nobody has an address, and nobody needs one.
struct NoAddresses final : sync::AddressBook {
  Status set(std::uint64_t, const std::string&, std::span<const std::byte>) override { return ok(); }
  std::vector<std::byte> get(std::uint64_t, const std::string&, bool& found) override {
    found = false;
    return {};
  }
};

/// Remembers how often it was called, and for when last.
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
