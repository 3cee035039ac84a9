#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/result.h"
#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {

/// Writes records to given partitions of one topic. Order per partition is kept and nothing is written twice
/// (idempotent producer, all replicas), unless the user's properties differ.
/// send() may be called from any thread, the rest from one.
class Producer final : private Listener {
 public:
  /// Errors: invalid_config.
  static Result<std::unique_ptr<Producer>> open(const Properties& properties, const std::string& topic,
                                                const std::string& client_id, Duration linger,
                                                Duration give_up_after);
  ~Producer() override;

  /// Learns where the topic lives. Without it librdkafka looks for a new topic once a second, and the first
  /// record waits for that. Blocks up to `timeout`; without an answer sending works all the same, later.
  void look_up(Duration timeout);
  /// Copies the value. timestamp_ms 0: now. False: the client's queue is full, serve and try again.
  /// Errors: unavailable (a record larger than allowed, a partition that does not exist, a client that gave
  /// up).
  Result<bool> send(std::int32_t partition, std::span<const std::byte> value, std::int64_t timestamp_ms);
  /// Takes in what became of earlier records, waiting up to `max_wait` for news.
  /// Errors: io (records that could not be written: names partition and reason; reported once).
  Status serve(Duration max_wait);
  /// Waits until everything is written. Errors: io (not within `deadline`, or that of serve()).
  Status flush(Duration deadline);

  [[nodiscard]] std::uint64_t delivered() const noexcept { return delivered_; }
  [[nodiscard]] const std::string& last_words() const noexcept { return last_words_; }

 private:
  explicit Producer(std::string topic) : topic_(std::move(topic)) {}
  void client_error(int code, std::string_view words) noexcept override;
  void delivered(int code, std::int32_t partition, std::size_t bytes) noexcept override;
  Status take_failure();

  std::string topic_;
  std::unique_ptr<Client> client_;
  std::uint64_t delivered_ = 0;
  std::uint64_t failed_ = 0;
  std::string last_words_;
  std::optional<Error> failure_;
};

}  // namespace rivulet::stream::kafka
