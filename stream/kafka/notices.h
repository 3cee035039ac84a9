#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/metrics.h"
#include "core/result.h"
#include "core/time.h"
#include "stream/kafka/client.h"
#include "stream/kafka/leaders.h"
#include "stream/kafka/statistics.h"

namespace rivulet::stream::kafka {

/// Errors of a client that keeps retrying. Counts every error by kind, and produces one message at intervals
/// for the log: librdkafka repeats the same error several times a second while a broker is unreachable.
class Notices final : public Listener {
 public:
  Notices(std::string brokers, MetricsSink& metrics);
  void client_error(int code, std::string_view words) noexcept override;
  void committed(int code) noexcept override;
  void statistics(std::string_view json) noexcept override;
  /// Records that a broker has just answered.
  void answered() noexcept { unreachable_.clear(); }
  /// Records that the broker at this address has just answered.
  void answered(const std::string& address) { words_.forget(address); }

  /// Returns a source_lost error if one is due: immediately after a quiet period, then at most every 5 s.
  std::optional<Error> take(TimePoint now) noexcept;
  /// Records an error that arrived in place of a record.
  void record_error(int code, std::string words) noexcept;
  /// Adds a message that is not a broker's answer.
  void report(std::string words) noexcept { pending_ = std::move(words); }
  /// librdkafka's last message; "no answer" if there was none.
  [[nodiscard]] const std::string& last_words() const noexcept { return last_words_; }
  /// "no broker of kafka:9092 can be reached (...)", from the loss of the last broker until one answers.
  /// Empty if a broker is connected, or its loss was not detected yet.
  [[nodiscard]] const std::string& unreachable() const noexcept { return unreachable_; }
  /// The last message about the broker at this address; empty if there is none.
  [[nodiscard]] std::string words_about(const std::string& address) const { return words_.about(address); }
  /// See StatisticsMeters.
  [[nodiscard]] std::optional<std::vector<Statistics::Silent>> take_silent() noexcept {
    return meters_.take_silent();
  }
  /// Partitions with records behind open transactions, as of the last statistics.
  [[nodiscard]] const std::vector<Statistics::Blocked>& blocked() const noexcept { return meters_.blocked(); }
  /// An error that retries cannot resolve: credentials, permissions, a broken client. Empty if there is none.
  [[nodiscard]] const std::string& hopeless() const noexcept { return hopeless_; }

 private:
  void miss_brokers() noexcept;

  static constexpr Duration quiet = std::chrono::seconds(5);
  std::string brokers_;
  Counter& transport_;
  Counter& auth_;
  Counter& fetch_;
  Counter& commit_;
  Counter& fatal_;
  Counter& commits_ok_;
  Counter& commits_failed_;
  Gauge& last_commit_;
  StatisticsMeters meters_;
  std::string last_words_ = "no answer";
  BrokerWords words_;
  std::string hopeless_;
  std::string unreachable_;
  std::optional<std::string> pending_;
  TimePoint next_{};
};

}  // namespace rivulet::stream::kafka
