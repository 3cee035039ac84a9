#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "stream/kafka/anchors.h"
#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {

/// Checks with its own client whether a few records are unchanged, without disturbing the reader's fetches.
/// Costs a connection and one batch of records per partition. Measured on loopback: 10 to 100 ms until the
/// answer, 0.3 to 20 ms for the destructor. Owner: the ingest thread.
class LogProbe final : private Listener {
 public:
  struct Question {
    std::size_t slot = 0;
    TopicPartition partition;
    Anchor anchor;
  };
  enum class Finding : std::uint8_t {
    same,
    gone,   ///< the record was deleted: no conclusion
    other,  ///< another record has its offset, or the log ends before it
  };
  struct Answer {
    std::size_t slot = 0;
    Finding finding = Finding::same;
  };

  static Result<std::unique_ptr<LogProbe>> query(const Properties& properties, const std::string& group,
                                                 std::vector<Question> questions);
  /// Returns the next answer, waiting up to `wait`. Each question is answered once. If the log lacks an
  /// offset, querying its ends may take half a second longer.
  std::optional<Answer> poll(Duration wait);
  [[nodiscard]] bool done() const noexcept { return questions_.empty(); }

 private:
  explicit LogProbe(std::vector<Question> questions) : questions_(std::move(questions)) {}
  void client_error(int, std::string_view) noexcept override {}
  std::optional<Finding> judge(const Question& question, const rd_kafka_message_s& message) const;
  std::vector<Question> questions_;  ///< unanswered
  std::unique_ptr<Client> client_;
};

}  // namespace rivulet::stream::kafka
