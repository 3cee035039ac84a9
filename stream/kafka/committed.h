#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {

/// Reads the offsets that a group has committed for the first partitions of a topic.
class CommittedOffsets final : private Listener {
 public:
  static Result<std::unique_ptr<CommittedOffsets>> open(const Properties& properties,
                                                        const std::string& group);
  ~CommittedOffsets() override;
  /// Returns the next offset of partitions 0 .. partitions-1; -1 if nothing was committed. Blocks up to
  /// `timeout`. Errors: unavailable.
  Result<std::vector<std::int64_t>> read(const std::string& topic, int partitions, Duration timeout);
  /// Returns the high watermark of each partition. Blocks up to `timeout` per partition. Errors: unavailable.
  Result<std::vector<std::int64_t>> ends(const std::string& topic, int partitions, Duration timeout);

 private:
  CommittedOffsets() = default;
  void client_error(int, std::string_view) noexcept override {}
  std::unique_ptr<Client> client_;
};

}  // namespace rivulet::stream::kafka
