#include "runtime/status/history.h"

#include <algorithm>

#include "runtime/status/node_status.h"

namespace rivulet::runtime {
void History::look(const NodeStatus& status, TimePoint now) {
  if (now < next_) return;
  next_ = now + std::chrono::seconds(1);
  const std::uint64_t looks = looks_.load(std::memory_order_relaxed);
  const auto put = [&](Series which, float value) {
    values_.at(static_cast<std::size_t>(which)).at(looks % kept).store(value, std::memory_order_relaxed);
  };
  put(Series::stream_rate, static_cast<float>(status.stream_rate.load()));
  put(Series::rows_waiting, static_cast<float>(status.rows_waiting.load()));
  put(Series::batch_rows, static_cast<float>(status.batch_rows.load()));
  put(Series::loss, static_cast<float>(status.loss.load()));
  put(Series::accuracy, static_cast<float>(status.accuracy.load()));
  put(Series::held_out, static_cast<float>(status.held_out_accuracy.load()));
  looks_.store(looks + 1, std::memory_order_release);
}

void History::mark(const std::string& phrase) {
  if (made_.size() == marks_kept) made_.erase(made_.begin());
  made_.push_back({looks_.load(std::memory_order_acquire), phrase});
  marks_.post(made_);
}

std::vector<History::Mark> History::marks() const {
  const std::vector<Made> all = marks_.read();
  const std::uint64_t looks = looks_.load(std::memory_order_acquire);
  std::vector<Mark> out;
  for (const Made& made : all)
    if (looks - made.looks < kept) out.push_back({looks - made.looks, made.phrase});
  return out;
}

std::vector<float> History::read(Series which) const {
  const std::uint64_t looks = looks_.load(std::memory_order_acquire);
  const auto& values = values_.at(static_cast<std::size_t>(which));
  std::vector<float> out;
  for (std::uint64_t i = looks - std::min<std::uint64_t>(looks, kept); i < looks; ++i)
    out.push_back(values.at(i % kept).load(std::memory_order_relaxed));
  return out;
}

}  // namespace rivulet::runtime
