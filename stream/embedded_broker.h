#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"

namespace rivulet::stream {

/// librdkafka's mock cluster as a broker for demos and fast tests: loopback, PLAINTEXT, no Admin API, all in
/// memory. Keeps about 5 MB per partition; older data is deleted silently.
class EmbeddedBroker {
 public:
  struct Topic {
    std::string name;
    int partitions = 1;
  };
  /// Errors: unavailable.
  static Result<std::unique_ptr<EmbeddedBroker>> start(const std::vector<Topic>& topics);
  /// For tests: a cluster of brokers 1 to `brokers`; broker 1 leads all partitions.
  static Result<std::unique_ptr<EmbeddedBroker>> start(const std::vector<Topic>& topics, int brokers);
  ~EmbeddedBroker();
  EmbeddedBroker(const EmbeddedBroker&) = delete;
  EmbeddedBroker& operator=(const EmbeddedBroker&) = delete;
  [[nodiscard]] const std::string& bootstrap_servers() const noexcept;  ///< 127.0.0.1:PORT
  /// For tests: stops broker 1, or restarts it on the same port.
  void set_down(bool down);
  void set_down(int broker, bool down);
  /// For tests: makes a broker accept connections without answering, like a hung one. It answers pending
  /// requests after a minute.
  void set_silent(int broker, bool silent);
  /// For tests: makes another broker the leader of a partition.
  void set_leader(const std::string& topic, int partition, int broker);
  /// For tests: removes the leader of a partition, as during an election, or restores it.
  void set_leaderless(const std::string& topic, int partition, bool leaderless);
  /// Rejects the next `times` produce requests with a retriable error.
  void refuse_records(std::size_t times);
  /// Rejects the next `times` offset commits.
  void refuse_commits(std::size_t times);

 private:
  struct State;
  explicit EmbeddedBroker(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::stream
