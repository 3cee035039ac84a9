#include "stream/embedded_broker.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>

#include <array>
#include <vector>

namespace rivulet::stream {

/// The mock cluster needs a client handle as its host; that handle connects to nothing.
struct EmbeddedBroker::State {
  rd_kafka_t* host = nullptr;
  rd_kafka_mock_cluster_t* cluster = nullptr;
  std::string bootstrap_servers;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (cluster != nullptr) rd_kafka_mock_cluster_destroy(cluster);
    if (host != nullptr) rd_kafka_destroy(host);
  }
};

namespace {
constexpr std::int32_t first_broker = 1;
// Kafka's API keys of these requests
constexpr std::int16_t write_records = 0;
constexpr std::int16_t offset_commit = 8;
}  // namespace

Result<std::unique_ptr<EmbeddedBroker>> EmbeddedBroker::start(const std::vector<Topic>& topics) {
  return start(topics, 1);
}

Result<std::unique_ptr<EmbeddedBroker>> EmbeddedBroker::start(const std::vector<Topic>& topics, int brokers) {
  auto state = std::make_unique<State>();
  std::array<char, 512> words{};
  rd_kafka_conf_t* conf = rd_kafka_conf_new();
  rd_kafka_conf_set_log_cb(conf, [](const rd_kafka_t*, int, const char*, const char*) {});
  state->host = rd_kafka_new(RD_KAFKA_PRODUCER, conf, words.data(), words.size());
  if (state->host == nullptr) {
    rd_kafka_conf_destroy(conf);
    return Error{ErrorCode::unavailable, std::string("the embedded broker did not start: ") + words.data()};
  }
  state->cluster = rd_kafka_mock_cluster_new(state->host, brokers);
  if (state->cluster == nullptr) return Error{ErrorCode::unavailable, "the embedded broker did not start"};
  for (const auto& topic : topics) {
    const auto code = rd_kafka_mock_topic_create(state->cluster, topic.name.c_str(), topic.partitions, 1);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
      return Error{ErrorCode::unavailable,
                   "topic \"" + topic.name + "\" of the embedded broker: " + rd_kafka_err2str(code)};
    for (int partition = 0; brokers > 1 && partition < topic.partitions; ++partition)
      rd_kafka_mock_partition_set_leader(state->cluster, topic.name.c_str(), partition, first_broker);
  }
  state->bootstrap_servers = rd_kafka_mock_cluster_bootstraps(state->cluster);
  return std::unique_ptr<EmbeddedBroker>(new EmbeddedBroker(std::move(state)));
}

EmbeddedBroker::EmbeddedBroker(std::unique_ptr<State> state) : state_(std::move(state)) {}
EmbeddedBroker::~EmbeddedBroker() = default;

const std::string& EmbeddedBroker::bootstrap_servers() const noexcept {
  return state_->bootstrap_servers;
}

void EmbeddedBroker::set_down(bool down) {
  set_down(first_broker, down);
}

void EmbeddedBroker::set_down(int broker, bool down) {
  if (down)
    rd_kafka_mock_broker_set_down(state_->cluster, broker);
  else
    rd_kafka_mock_broker_set_up(state_->cluster, broker);
}

void EmbeddedBroker::set_silent(int broker, bool silent) {
  constexpr int a_minute_ms = 60'000;
  rd_kafka_mock_broker_set_rtt(state_->cluster, broker, silent ? a_minute_ms : 0);
}

void EmbeddedBroker::set_leader(const std::string& topic, int partition, int broker) {
  rd_kafka_mock_partition_set_leader(state_->cluster, topic.c_str(), partition, broker);
}

void EmbeddedBroker::set_leaderless(const std::string& topic, int partition, bool leaderless) {
  rd_kafka_mock_partition_set_leader(state_->cluster, topic.c_str(), partition,
                                     leaderless ? -1 : first_broker);
}

void EmbeddedBroker::refuse_records(std::size_t times) {
  const std::vector<rd_kafka_resp_err_t> refusals(times, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION);
  rd_kafka_mock_push_request_errors_array(state_->cluster, write_records, times, refusals.data());
}

void EmbeddedBroker::refuse_commits(std::size_t times) {
  const std::vector<rd_kafka_resp_err_t> refusals(times, RD_KAFKA_RESP_ERR_INVALID_COMMIT_OFFSET_SIZE);
  rd_kafka_mock_push_request_errors_array(state_->cluster, offset_commit, times, refusals.data());
}

}  // namespace rivulet::stream
