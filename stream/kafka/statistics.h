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

/// What is used of the statistics that librdkafka makes of a client every statistics.interval.ms. What they
/// do not have is absent.
struct Statistics {
  struct Answers {
    std::int32_t broker = 0;  ///< its node id
    double mean_seconds = 0;  ///< from a request to its answer
  };
  /// A partition whose readers of committed records an open transaction holds back.
  struct Held {
    std::string topic;
    std::int32_t partition = 0;
    std::int64_t from = 0;  ///< its last stable offset
    std::int64_t end = 0;   ///< of its log
  };
  /// A partition whose leader has a question of this client and does not answer it, or is not connected.
  struct Silent {
    std::string topic;
    std::int32_t partition = 0;
    double seconds = 0;  ///< since its last answer; infinite: not connected
  };
  std::optional<int> brokers_up;  ///< those with a connection that stands
  std::vector<Answers> answers;   ///< of brokers that answered within the interval, brokers_shown at most
  std::optional<double> throttle_seconds;  ///< mean wait that the strictest broker asked for
  std::optional<double> queue_records;     ///< fetched and not handed out yet
  std::optional<double> queue_bytes;
  std::vector<Held> held;
  std::vector<Silent> silent;

  static constexpr std::size_t brokers_shown = 64;
  /// Longer texts are not read: about a thousand partitions in the topics of a client.
  static constexpr std::size_t bytes_most = 2 << 20;
  /// Nothing if it is not JSON, or too long.
  static std::optional<Statistics> parse(std::string_view json);
};

/// Statistics as metrics. A series begins when something is known of it, and one of a broker ends with its
/// answers. Owner: the thread that serves the client.
class StatisticsMeters {
 public:
  explicit StatisticsMeters(MetricsSink& metrics) : metrics_(metrics) {}
  /// Cost: reads the text once, 0.1 ms for two brokers and three partitions, 15 ms for 1 MB. What cannot be
  /// read changes nothing. How many brokers have a connection that stands, if that is known.
  std::optional<int> show(std::string_view json) noexcept;
  /// Of the last text that could be read.
  [[nodiscard]] const std::vector<Statistics::Held>& held() const noexcept { return held_; }
  /// The same, each text once.
  [[nodiscard]] std::optional<std::vector<Statistics::Silent>> take_silent() noexcept {
    return std::exchange(silent_, std::nullopt);
  }

 private:
  void show(Gauge*& gauge, const char* name, const std::optional<double>& value);
  void show_answers(const std::vector<Statistics::Answers>& answers);

  MetricsSink& metrics_;
  // nullptr: nothing is known yet. Who asks the sink for a series again and again may wait for a scrape.
  Gauge* brokers_up_ = nullptr;
  Gauge* throttle_seconds_ = nullptr;
  Gauge* queue_records_ = nullptr;
  Gauge* queue_bytes_ = nullptr;
  std::vector<Statistics::Held> held_;
  std::optional<std::vector<Statistics::Silent>> silent_;
  std::map<std::int32_t, Gauge*> round_trips_;  ///< by node id of the broker
};

}  // namespace rivulet::stream::kafka
