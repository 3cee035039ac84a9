#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {

/// Commits offsets through a client of its own. librdkafka cannot end while a commit waits for its answer,
/// and waits a minute for a broker that is stopped but not gone. This client gives up after seconds; the one
/// that fetches keeps the patience that a slow link needs. What failed is sent again until newer offsets
/// replace it: a feeder that paces itself by them may be waiting, with no more rows coming before.
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

  /// Sends the offsets and returns at once; the listener hears what became of them while serve() is called.
  /// Errors: source_lost.
  Status commit(std::unique_ptr<PartitionList> offsets);
  void serve(TimePoint now);
  /// Offsets that the broker has accepted since the last call.
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
  std::unique_ptr<PartitionList> latest_;  ///< last offsets given
  bool failed_ = false;                    ///< to get them through
  TimePoint again_at_{};
  std::vector<Accepted> accepted_;
  std::unique_ptr<Client> client_;  ///< from the first commit on
};

}  // namespace rivulet::stream::kafka
