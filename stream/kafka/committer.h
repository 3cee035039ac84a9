#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {

/// Commits offsets through a separate client. librdkafka cannot shut down while a commit is pending, and
/// waits a minute for a broker that is stopped but reachable. This client gives up after a few seconds; the
/// fetching client keeps the long timeouts that a slow link needs. Failed commits are retried until newer
/// offsets replace them: a feeder that paces itself by commits may wait for them before it sends more rows.
class Committer final : public Listener {
 public:
  struct Accepted {
    std::string topic;
    std::int32_t partition = 0;
    std::int64_t offset = 0;  ///< of the next record
  };
  Committer(const Properties& properties, std::string group_id, std::string client_id, Listener& listener)
      : properties_(properties),
        group_id_(std::move(group_id)),
        client_id_(std::move(client_id)),
        listener_(listener) {}

  /// Sends the offsets and returns immediately. The listener receives the result during serve(). Errors:
  /// source_lost.
  Status commit(std::unique_ptr<PartitionList> offsets);
  void serve(TimePoint now);
  /// Returns the offsets that the broker has accepted since the last call.
  std::vector<Accepted> take_accepted() { return std::exchange(accepted_, {}); }

  void client_error(int code, std::string_view words) noexcept override {
    listener_.client_error(code, words);
  }
  void accepted(std::string_view topic, std::int32_t partition, std::int64_t offset) noexcept override;
  void committed(int code) noexcept override;

 private:
  static constexpr Duration again_after = std::chrono::seconds(1);
  Status send();
  Properties properties_;
  std::string group_id_;
  std::string client_id_;
  Listener& listener_;
  std::unique_ptr<PartitionList> latest_;  ///< last offsets passed to commit()
  bool failed_ = false;                    ///< the last attempt failed
  TimePoint again_at_{};
  std::vector<Accepted> accepted_;
  std::unique_ptr<Client> client_;  ///< created by the first commit
};

}  // namespace rivulet::stream::kafka
