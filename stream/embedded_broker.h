#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"

namespace rivulet::stream {

/// librdkafka's mock cluster as a broker for demos and fast tests: loopback, PLAINTEXT, no Admin API,
/// about 5 MB kept per partition (older data is silently gone), everything in memory.
class EmbeddedBroker {
 public:
  struct Topic {
    std::string name;
    int partitions = 1;
  };
  /// Errors: unavailable.
  static Result<std::unique_ptr<EmbeddedBroker>> start(const std::vector<Topic>& topics);
  /// For tests: a cluster of brokers 1 to `brokers`; the first leads all partitions.
  static Result<std::unique_ptr<EmbeddedBroker>> start(const std::vector<Topic>& topics, int brokers);
  ~EmbeddedBroker();
  EmbeddedBroker(const EmbeddedBroker&) = delete;
  EmbeddedBroker& operator=(const EmbeddedBroker&) = delete;
  [[nodiscard]] const std::string& bootstrap_servers() const noexcept;  ///< 127.0.0.1:PORT
  /// For tests: the first broker goes away and comes back on the same port.
  void set_down(bool down);
  void set_down(int broker, bool down);
  /// For tests: a broker takes connections and answers nothing, as one that hangs; what it was asked
  /// meanwhile it answers a minute later.
  void set_silent(int broker, bool silent);
  /// For tests: another broker leads a partition.
  void set_leader(const std::string& topic, int partition, int broker);
  /// For tests: a partition loses its leader, as after an election that has not ended, and gets it back.
  void set_leaderless(const std::string& topic, int partition, bool leaderless);
  /// The next `times` requests to write records are refused, in a way that has the client try again.
  void refuse_records(std::size_t times);
  /// The next `times` offset commits are refused.
  void refuse_commits(std::size_t times);

 private:
  struct State;
  explicit EmbeddedBroker(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

}  // namespace rivulet::stream
