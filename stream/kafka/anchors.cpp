#include "stream/kafka/anchors.h"

#include <fmt/format.h>
#include <librdkafka/rdkafka.h>

#include <cerrno>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <system_error>

namespace rivulet::stream::kafka {
namespace {

constexpr const char* anchors_head = "rivulet anchors 1";
constexpr int entries_max = 100'000;

std::span<const std::byte> bytes_at(const void* begin, std::size_t size) {
  return {static_cast<const std::byte*>(begin), begin == nullptr ? 0 : size};
}

std::optional<std::uint64_t> from_hex(const std::string& text) {
  std::uint64_t number = 0;
  std::istringstream in(text);
  if (text.size() != 16 || !(in >> std::hex >> number) || !in.eof()) return std::nullopt;
  return number;
}

}  // namespace

Anchor anchor_of(const rd_kafka_message_s& message) {
  Hasher hasher;
  rd_kafka_timestamp_type_t type = RD_KAFKA_TIMESTAMP_NOT_AVAILABLE;
  hasher.add_value(rd_kafka_message_timestamp(&message, &type));
  hasher.add_value(static_cast<std::uint64_t>(message.key_len));
  hasher.add(bytes_at(message.key, message.key_len));
  hasher.add_value(message.payload == nullptr);
  hasher.add(bytes_at(message.payload, message.len));
  return {message.offset, hasher.finish()};
}

std::optional<Anchor> AnchorFile::read(const TopicPartition& wanted) const {
  std::optional<Anchor> found;
  std::ifstream file(path_);
  std::string line;
  if (path_.empty() || !std::getline(file, line) || line != anchors_head) return found;
  for (int i = 0; i < entries_max && std::getline(file, line); ++i) {
    std::istringstream words(line);
    std::string topic;
    std::string low;
    std::string high;
    std::int32_t partition = 0;
    Anchor anchor;
    if (!(words >> topic >> partition >> anchor.offset >> high >> low)) continue;
    const auto upper = from_hex(high);
    const auto lower = from_hex(low);
    if (!upper || !lower || anchor.offset < 0) continue;
    anchor.fingerprint = {.low = *lower, .high = *upper};
    if (wanted.topic == topic && wanted.id.partition == partition) found = anchor;
  }
  return found;
}

Status AnchorFile::write(const std::vector<Entry>& entries) const {
  if (path_.empty()) return ok();
  std::string text = std::string(anchors_head) + "\n";
  for (const auto& [partition, anchor] : entries)
    text += fmt::format("{} {} {} {:016x} {:016x}\n", partition.topic, partition.id.partition, anchor.offset,
                        anchor.fingerprint.high, anchor.fingerprint.low);
  const std::string temporary = path_ + ".new";
  std::ofstream file(temporary, std::ios::trunc);
  file << text;
  file.close();
  if (file && std::rename(temporary.c_str(), path_.c_str()) == 0) return ok();
  return Error{ErrorCode::io, fmt::format("{}: {}", path_, std::generic_category().message(errno))};
}

}  // namespace rivulet::stream::kafka
