#include "stream/kafka/committed.h"

#include <librdkafka/rdkafka.h>

#include <algorithm>

namespace rivulet::stream::kafka {

Result<std::unique_ptr<CommittedOffsets>> CommittedOffsets::open(const Properties& properties,
                                                                 const std::string& group) {
  const Default defaults[] = {{"group.id", group}};
  // This group replaces the user's own.
  Properties with_group = properties;
  std::erase_if(with_group, [](const auto& entry) { return entry.first == "group.id"; });
  std::unique_ptr<CommittedOffsets> reader(new CommittedOffsets());
  auto client = Client::open(ClientKind::consumer, with_group, defaults, *reader);
  if (!client) return client.error();
  reader->client_ = std::move(client).value();
  return reader;
}

CommittedOffsets::~CommittedOffsets() = default;

Result<std::vector<std::int64_t>> CommittedOffsets::read(const std::string& topic, int partitions,
                                                         Duration timeout) {
  PartitionList list;
  for (int p = 0; p < partitions; ++p) list.add(topic, p, RD_KAFKA_OFFSET_INVALID);
  const auto code = rd_kafka_committed(client_->handle(), list.get(), to_ms(timeout));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return Error{ErrorCode::unavailable, words_of(code)};
  std::vector<std::int64_t> offsets;
  offsets.reserve(static_cast<std::size_t>(partitions));
  for (int p = 0; p < partitions; ++p)
    offsets.push_back(std::max<std::int64_t>(list.offset(static_cast<std::size_t>(p)), -1));
  return offsets;
}

Result<std::vector<std::int64_t>> CommittedOffsets::ends(const std::string& topic, int partitions,
                                                         Duration timeout) {
  std::vector<std::int64_t> offsets;
  offsets.reserve(static_cast<std::size_t>(partitions));
  for (int p = 0; p < partitions; ++p) {
    const auto marks = query_watermarks(client_->handle(), topic, p, timeout);
    if (!marks) return marks.error();
    offsets.push_back(marks.value().high);
  }
  return offsets;
}

}  // namespace rivulet::stream::kafka
