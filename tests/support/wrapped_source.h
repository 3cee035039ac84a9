#pragma once
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "stream/source.h"

namespace rivulet::testing {

/// Forwards to another source; tests override the calls that they observe or spoil.
struct WrappedSource : stream::RecordSource {
  explicit WrappedSource(std::unique_ptr<stream::RecordSource> source) : inner(std::move(source)) {}
  Result<std::span<const Record>> poll(std::size_t max, Duration wait) override {
    return inner->poll(max, wait);
  }
  void keep_alive() override { inner->keep_alive(); }
  Status commit(std::span<const NextOffset> positions) override { return inner->commit(positions); }
  Status assign(const Assignment& assignment) override { return inner->assign(assignment); }
  std::vector<stream::Gap> take_gaps() override { return inner->take_gaps(); }
  [[nodiscard]] std::span<const stream::PartitionState> partitions() const noexcept override {
    return inner->partitions();
  }
  [[nodiscard]] bool exhausted() const noexcept override { return inner->exhausted(); }
  [[nodiscard]] TimePoint next_due() const noexcept override { return inner->next_due(); }
  std::unique_ptr<stream::RecordSource> inner;
};

}  // namespace rivulet::testing
