#include "stream/kafka/client.h"

#include <librdkafka/rdkafka.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <memory>
#include <semaphore>
#include <system_error>
#include <thread>

#include "core/clock.h"
#include "stream/kafka/leaders.h"
#include "stream/kafka/metadata.h"

namespace rivulet::stream::kafka {
namespace {

using Words = std::array<char, 512>;

struct DestroyConf {
  void operator()(rd_kafka_conf_t* conf) const noexcept { rd_kafka_conf_destroy(conf); }
};
using Conf = std::unique_ptr<rd_kafka_conf_t, DestroyConf>;

Listener& listener_of(void* opaque) noexcept {
  return *static_cast<Listener*>(opaque);
}

void on_error(rd_kafka_t*, int code, const char* words, void* opaque) {
  listener_of(opaque).client_error(code, words);
}

void on_commit(rd_kafka_t*, rd_kafka_resp_err_t code, rd_kafka_topic_partition_list_t* list, void* opaque) {
  for (int i = 0; code == RD_KAFKA_RESP_ERR_NO_ERROR && list != nullptr && i < list->cnt; ++i) {
    const rd_kafka_topic_partition_t& of = list->elems[i];
    code = of.err;
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) listener_of(opaque).accepted(of.topic, of.partition, of.offset);
  }
  listener_of(opaque).committed(code);
}

void on_delivery(rd_kafka_t*, const rd_kafka_message_t* message, void* opaque) {
  listener_of(opaque).delivered(message->err, message->partition, message->len);
}

int on_statistics(rd_kafka_t*, char* json, std::size_t size, void* opaque) {
  listener_of(opaque).statistics({json, size});
  return 0;  // librdkafka frees the text
}

/// librdkafka logs to stderr by default; relevant events also arrive as errors.
void no_log(const rd_kafka_t*, int, const char*, const char*) {}

/// Traffic resumes within 2 s after a link returns: TCP alone would wait as long as the link was down. A
/// broker that acknowledges nothing for 5 s is reconnected. So is a broker whose answer is overdue, since the
/// answer may be lost: clients that always wait for an answer (socket.keepalive.enable) probe after 3 s, then
/// once per second. An answer takes at most 5 s, so it costs at most one probe.
int open_socket(int domain, int type, int protocol, void*) {
  constexpr int unacknowledged_ms = 5000;
  constexpr int idle_s = 3;
  constexpr int between_probes_s = 1;
  const int fd = ::socket(domain, type | SOCK_CLOEXEC, protocol);
  if (fd < 0) return fd;
  const auto set = [fd](int option, int value) {
    ::setsockopt(fd, IPPROTO_TCP, option, &value, sizeof value);
  };
  set(TCP_USER_TIMEOUT, unacknowledged_ms);
  set(TCP_KEEPIDLE, idle_s);
  set(TCP_KEEPINTVL, between_probes_s);
  return fd;
}

/// Statistics reveal a silent broker, so the user may not disable them.
bool tells_in_time(const std::string& interval_ms) {
  constexpr int longest = 5000;
  int ms = 1;
  std::from_chars(interval_ms.data(), interval_ms.data() + interval_ms.size(), ms);
  return ms > 0 && ms <= longest;
}

/// Sets all properties; adds one message to `wrong` per rejected property.
Conf configure(ClientKind kind, const Properties& properties, std::span<const Default> defaults,
               std::vector<std::string>& wrong) {
  Conf conf(rd_kafka_conf_new());
  Words words{};
  const auto set = [&](const std::string& name, const std::string& value) {
    if (rd_kafka_conf_set(conf.get(), name.c_str(), value.c_str(), words.data(), words.size()) !=
        RD_KAFKA_CONF_OK)
      wrong.push_back(name + ": " + words.data());
  };
  set("reconnect.backoff.max.ms", "1000");  // not 10 s: a restored link would stay unused for that long
  if (kind != ClientKind::producer) {
    set("enable.auto.commit", "false");  // offsets belong to the agreed state
    set("allow.auto.create.topics", "false");
  }
  for (const auto& [name, value] : defaults) set(std::string(name), std::string(value));
  for (const auto& [name, value] : properties) set(name, value);
  if (kind != ClientKind::reader) set("statistics.interval.ms", "0");
  if (kind == ClientKind::reader && !tells_in_time(property(properties, "statistics.interval.ms")))
    set("statistics.interval.ms", "5000");
  if (property(properties, "debug").empty() && property(properties, "log_level").empty())
    rd_kafka_conf_set_log_cb(conf.get(), no_log);
  return conf;
}

Result<rd_kafka_t*> create(ClientKind kind, Conf conf) {
  Words words{};
  const auto type = kind == ClientKind::producer ? RD_KAFKA_PRODUCER : RD_KAFKA_CONSUMER;
  rd_kafka_t* handle = rd_kafka_new(type, conf.get(), words.data(), words.size());
  if (handle == nullptr)
    return Error{ErrorCode::invalid_config, std::string("source.kafka.properties: ") + words.data()};
  static_cast<void>(conf.release());  // now owned by the handle
  if (kind == ClientKind::consumer) rd_kafka_poll_set_consumer(handle);
  return handle;
}

/// A consumer's close waits for the answers to its commits. The wait is bounded here, because the brokers may
/// be unreachable.
void wait_for_commits(rd_kafka_t* consumer) {
  rd_kafka_queue_t* queue = rd_kafka_queue_new(consumer);
  rd_kafka_error_t* refused = rd_kafka_consumer_close_queue(consumer, queue);  // a client without a group is
                                                                               // rejected
  for (int i = 0; i < 40 && refused == nullptr && rd_kafka_consumer_closed(consumer) == 0; ++i)
    if (rd_kafka_event_t* event = rd_kafka_queue_poll(queue, 25); event != nullptr)
      rd_kafka_event_destroy(event);
  if (refused != nullptr) rd_kafka_error_destroy(refused);
  rd_kafka_queue_destroy(queue);
}

}  // namespace

Result<std::unique_ptr<Client>> Client::open(ClientKind kind, const Properties& properties,
                                             std::span<const Default> defaults, Listener& listener) {
  if (brokers_of(properties).empty())
    return Error{ErrorCode::invalid_config,
                 "source.kafka.properties has no bootstrap.servers: list the brokers to connect to"};
  std::vector<std::string> wrong;
  Conf conf = configure(kind, properties, defaults, wrong);
  if (!wrong.empty()) {
    std::string message = "source.kafka.properties: ";
    for (const auto& words : wrong) message += (&words == wrong.data() ? "" : "; ") + words;
    return Error{ErrorCode::invalid_config, std::move(message)};
  }
  rd_kafka_conf_set_opaque(conf.get(), &listener);
  rd_kafka_conf_set_socket_cb(conf.get(), open_socket);
  rd_kafka_conf_set_error_cb(conf.get(), on_error);
  if (kind == ClientKind::consumer) rd_kafka_conf_set_offset_commit_cb(conf.get(), on_commit);
  if (kind == ClientKind::reader) rd_kafka_conf_set_stats_cb(conf.get(), on_statistics);
  if (kind == ClientKind::producer) rd_kafka_conf_set_dr_msg_cb(conf.get(), on_delivery);
  auto handle = create(kind, std::move(conf));
  if (!handle) return handle.error();
  return std::unique_ptr<Client>(new Client(kind, handle.value()));
}

// librdkafka's shutdown waits for all of its threads and their pending work: forever, for a record of a
// deleted topic. So it runs on its own thread.
void end(rd_kafka_s* handle, int flags) noexcept {
  constexpr auto end_most = std::chrono::seconds(3);
  try {
    const auto ended = std::make_shared<std::binary_semaphore>(0);
    std::thread([=] {
      rd_kafka_destroy_flags(handle, flags);
      ended->release();
    }).detach();
    static_cast<void>(ended->try_acquire_for(end_most));
  } catch (const std::system_error&) {
    rd_kafka_destroy_flags(handle, flags);  // no thread available
  }
}

Client::~Client() {
  if (kind_ == ClientKind::producer) {
    // Unsent records are discarded: callers that need them sent call flush() first.
    rd_kafka_purge(handle_,
                   RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT | RD_KAFKA_PURGE_F_NON_BLOCKING);
    end(handle_, 0);
    return;
  }
  if (commits_) wait_for_commits(handle_);
  end(handle_, RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
}

void Client::serve_callbacks(Duration wait) noexcept {
  if (kind_ == ClientKind::reader) {
    rd_kafka_poll(handle_, to_ms(wait));
    return;
  }
  const Message none(rd_kafka_consumer_poll(handle_, to_ms(wait)));
}

std::string property(const Properties& properties, std::string_view name) {
  std::string value;
  for (const auto& [key, text] : properties)
    if (key == name) value = text;  // the last one wins, as in librdkafka
  return value;
}

std::string brokers_of(const Properties& properties) {
  const auto brokers = property(properties, "bootstrap.servers");
  return brokers.empty() ? property(properties, "metadata.broker.list") : brokers;
}

std::string words_of(int code) {
  return rd_kafka_err2str(static_cast<rd_kafka_resp_err_t>(code));
}

Result<std::optional<int>> partitions_of(rd_kafka_s* client, const std::string& topic, Duration timeout) {
  const auto found = leaders_of(client, std::span(&topic, 1), timeout);
  if (!found) return found.error();
  const auto leaders = found.value().find(topic);
  if (leaders == found.value().end()) return std::optional<int>();
  return std::optional<int>(static_cast<int>(leaders->second.size()));
}

Result<std::vector<std::string>> topics_of(rd_kafka_s* client, Duration timeout) {
  const auto answer = query_all_topics(client, timeout);
  if (!answer) return answer.error();
  const Metadata& all = answer.value();
  std::vector<std::string> names;
  for (int i = 0; i < all->topic_cnt; ++i) names.emplace_back(all->topics[i].topic);
  return names;
}

Status query_leader(rd_kafka_s* client, const std::string& topic, std::int32_t partition, Duration timeout) {
  PartitionList list;
  list.add(topic, partition, RD_KAFKA_OFFSET_END);
  const auto code = rd_kafka_offsets_for_times(client, list.get(), to_ms(timeout));
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return Error{ErrorCode::unavailable, words_of(code)};
  return ok();
}

namespace {

/// Start or end of each log, for `which` = RD_KAFKA_OFFSET_BEGINNING or RD_KAFKA_OFFSET_END: brokers accept
/// these values in place of a timestamp.
Result<std::vector<std::int64_t>> offsets_at(rd_kafka_s* client, std::span<const TopicPartition> partitions,
                                             std::int64_t which, Duration timeout) {
  PartitionList list;
  for (const auto& [topic, id] : partitions) list.add(topic, id.partition, which);
  int code = rd_kafka_offsets_for_times(client, list.get(), to_ms(timeout));
  std::vector<std::int64_t> offsets;
  offsets.reserve(partitions.size());
  for (std::size_t i = 0; i < partitions.size() && code == RD_KAFKA_RESP_ERR_NO_ERROR; ++i) {
    code = list.offset(i) >= 0 ? list.code(i) : int{RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE};
    offsets.push_back(list.offset(i));
  }
  if (code != RD_KAFKA_RESP_ERR_NO_ERROR) return Error{ErrorCode::unavailable, words_of(code)};
  return offsets;
}

}  // namespace

Result<std::vector<Watermarks>> query_watermarks(rd_kafka_s* client,
                                                 std::span<const TopicPartition> partitions,
                                                 Duration timeout) {
  const RealClock clock;
  const TimePoint end = clock.now() + timeout;
  const auto low = offsets_at(client, partitions, RD_KAFKA_OFFSET_BEGINNING, timeout);
  if (!low) return low.error();
  const auto high = offsets_at(client, partitions, RD_KAFKA_OFFSET_END,
                               std::max<Duration>(end - clock.now(), std::chrono::milliseconds(1)));
  if (!high) return high.error();
  std::vector<Watermarks> marks;
  marks.reserve(partitions.size());
  for (std::size_t i = 0; i < partitions.size(); ++i)
    marks.push_back({.low = low.value()[i], .high = high.value()[i]});
  return marks;
}

Result<Watermarks> query_watermarks(rd_kafka_s* client, const std::string& topic, std::int32_t partition,
                                    Duration timeout) {
  const TopicPartition one{topic, {0, partition}};
  const auto marks = query_watermarks(client, std::span(&one, 1), timeout);
  if (!marks) return marks.error();
  return marks.value().front();
}

Watermarks known_watermarks(rd_kafka_s* client, const std::string& topic, std::int32_t partition) noexcept {
  Watermarks marks{.low = -1, .high = -1};
  if (rd_kafka_get_watermark_offsets(client, topic.c_str(), partition, &marks.low, &marks.high) !=
      RD_KAFKA_RESP_ERR_NO_ERROR)
    return {.low = -1, .high = -1};
  return {.low = std::max<std::int64_t>(marks.low, -1), .high = std::max<std::int64_t>(marks.high, -1)};
}

bool is_embedded(rd_kafka_s* client) {
  char* id = rd_kafka_clusterid(client, 0);
  if (id == nullptr) return false;
  const bool embedded = std::string_view(id).starts_with("mockCluster");
  rd_kafka_mem_free(client, id);
  return embedded;
}

Properties for_embedded(const Properties& properties) {
  Properties all{{"fetch.wait.max.ms", "10"}};
  all.insert(all.end(), properties.begin(), properties.end());
  return all;
}

int to_ms(Duration d) noexcept {
  using std::chrono::milliseconds;
  return static_cast<int>(
      std::clamp<std::int64_t>(std::chrono::ceil<milliseconds>(d).count(), 0, 86'400'000));
}

void DestroyMessage::operator()(rd_kafka_message_s* message) const noexcept {
  rd_kafka_message_destroy(message);
}

PartitionList::PartitionList() : list_(rd_kafka_topic_partition_list_new(4)) {}
PartitionList::~PartitionList() {
  rd_kafka_topic_partition_list_destroy(list_);
}
void PartitionList::add(const std::string& topic, std::int32_t partition, std::int64_t offset) {
  rd_kafka_topic_partition_list_add(list_, topic.c_str(), partition)->offset = offset;
}
std::int64_t PartitionList::offset(std::size_t i) const noexcept {
  return list_->elems[static_cast<int>(i)].offset;
}
int PartitionList::code(std::size_t i) const noexcept {
  return list_->elems[static_cast<int>(i)].err;
}

/// The client's main thread processes its queue in order. The first query follows the stop requests, so its
/// answer means that they were executed and have queued their completions. The second query follows those
/// completions.
Status assign(rd_kafka_s* client, const PartitionList& list) {
  auto code = rd_kafka_assign(client, list.get());
  for (int question = 0; question < 2 && code == RD_KAFKA_RESP_ERR_NO_ERROR; ++question) {
    rd_kafka_topic_partition_list_t* assigned = nullptr;
    code = rd_kafka_assignment(client, &assigned);
    if (assigned != nullptr) rd_kafka_topic_partition_list_destroy(assigned);
  }
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) return ok();
  return Error{ErrorCode::source_lost, "the partitions cannot be assigned: " + words_of(code)};
}

}  // namespace rivulet::stream::kafka
