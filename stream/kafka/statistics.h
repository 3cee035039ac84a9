#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/metrics.h"

namespace rivulet::stream::kafka {

/// The used part of librdkafka's client statistics, which arrive every statistics.interval.ms. Missing values
/// are absent.
struct Statistics {
  struct Answers {
    std::int32_t broker = 0;  ///< node id
    double mean_seconds = 0;  ///< mean time from a request to its answer
  };
  /// A partition in which an open transaction blocks readers of committed records.
  struct Blocked {
    std::string topic;
    std::int32_t partition = 0;
    std::int64_t from = 0;  ///< last stable offset
    std::int64_t end = 0;   ///< end of the log
  };
  /// A partition whose leader owes this client an answer, or is not connected.
  struct Silent {
    std::string topic;
    std::int32_t partition = 0;
    double seconds = 0;  ///< since its last answer; infinite: not connected
  };
  std::optional<int> brokers_up;  ///< brokers with an established connection
  std::vector<Answers> answers;   ///< of brokers that answered within the interval, at most brokers_shown
  std::optional<double> throttle_seconds;  ///< maximum over the brokers of the mean requested wait
  std::optional<double> queue_records;     ///< fetched and not yet returned
  std::optional<double> queue_bytes;
  std::vector<Blocked> blocked;
  std::vector<Silent> silent;

  static constexpr std::size_t brokers_shown = 64;
  /// Maximum size of a text; longer ones are ignored. Suffices for about a thousand partitions.
  static constexpr std::size_t bytes_most = 2 << 20;
  /// Returns nullopt if the text is not JSON, or too long.
  static std::optional<Statistics> parse(std::string_view json);
};

/// Exports statistics as metrics. A series begins with its first value; the series of a broker ends when it
/// stops answering. Owner: the thread that serves the client.
class StatisticsMeters {
 public:
  explicit StatisticsMeters(MetricsSink& metrics) : metrics_(metrics) {}
  /// Exports the values of one text and returns the number of connected brokers, if known. Ignores invalid
  /// text. Cost: reads the text once, 0.1 ms for two brokers and three partitions, 15 ms for 1 MB.
  std::optional<int> show(std::string_view json) noexcept;
  /// Partitions in which open transactions block reading, from the last valid text.
  [[nodiscard]] const std::vector<Statistics::Blocked>& blocked() const noexcept { return blocked_; }
  /// Silent partitions from the last valid text; nullopt if there is no new text.
  [[nodiscard]] std::optional<std::vector<Statistics::Silent>> take_silent() noexcept {
    return std::exchange(silent_, std::nullopt);
  }

 private:
  void show(Gauge*& gauge, const char* name, const std::optional<double>& value);
  void show_answers(const std::vector<Statistics::Answers>& answers);

  MetricsSink& metrics_;
  // Each is null before its first value. Handles are cached, because a lookup in the sink may wait for a
  // scrape.
  Gauge* brokers_up_ = nullptr;
  Gauge* throttle_seconds_ = nullptr;
  Gauge* queue_records_ = nullptr;
  Gauge* queue_bytes_ = nullptr;
  std::vector<Statistics::Blocked> blocked_;
  std::optional<std::vector<Statistics::Silent>> silent_;
  std::map<std::int32_t, Gauge*> round_trips_;  ///< by broker node id
};

}  // namespace rivulet::stream::kafka
