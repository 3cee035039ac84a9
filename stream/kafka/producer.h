#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/result.h"
#include "stream/kafka/client.h"

namespace rivulet::stream::kafka {

/// Writes records to given partitions of one topic. Keeps the order per partition and writes nothing twice
/// (idempotent producer, all replicas), unless the user's properties differ. send() may be called from any
/// thread, the rest from one.
class Producer final : private Listener {
 public:
  /// Errors: invalid_config.
  static Result<std::unique_ptr<Producer>> open(const Properties& properties, const std::string& topic,
                                                const std::string& client_id, Duration linger,
                                                Duration give_up_after);
  ~Producer() override;

  /// Fetches the topic's metadata. Without it librdkafka looks for a new topic once per second, and the first
  /// record waits for that. Blocks up to `timeout`; without an answer, the first send is only slower.
  void look_up(Duration timeout);
  /// Copies the value. timestamp_ms 0 means now. Returns false if the client's queue is full: call serve()
  /// and retry. Errors: unavailable (record too large, unknown partition, failed client).
  Result<bool> send(std::int32_t partition, std::span<const std::byte> value, std::int64_t timestamp_ms);
  /// Processes delivery reports, waiting up to `max_wait` for one. Errors: io (records that could not be
  /// written, with partition and reason), returned only once.
  Status serve(Duration max_wait);
  /// Waits until everything is written. Errors: io (not finished within `deadline`, or as for serve()).
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
