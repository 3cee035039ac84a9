#pragma once
#include <memory>
#include <string>

#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {

/// Commits offsets through a client of its own. librdkafka cannot end while a commit waits for its answer,
/// and waits a minute for a broker that is stopped but not gone. This client gives up after seconds; the one
/// that fetches keeps the patience that a slow link needs.
class Committer {
 public:
  Committer(const Properties& properties, std::string group_id, std::string client_id, Listener& listener)
      : properties_(properties),
        group_id_(std::move(group_id)),
        client_id_(std::move(client_id)),
        listener_(listener) {}

  /// Sends the offsets and returns at once; the listener hears what became of them while serve() is called.
  /// Errors: source_lost.
  Status commit(const PartitionList& offsets);
  void serve();

 private:
  Properties properties_;
  std::string group_id_;
  std::string client_id_;
  Listener& listener_;
  std::unique_ptr<Client> client_;  ///< from the first commit on
};

}  // namespace rivulet::stream::kafka
