#include "stream/kafka/notices.h"

#include <librdkafka/rdkafka.h>

#include "core/clock.h"

namespace rivulet::stream::kafka {
namespace {

bool is_auth(int code) noexcept {
  switch (code) {
    case RD_KAFKA_RESP_ERR__AUTHENTICATION:
    case RD_KAFKA_RESP_ERR__SSL:
    case RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_SASL_MECHANISM:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED: return true;
    default: return false;
  }
}

}  // namespace

Notices::Notices(std::string brokers, MetricsSink& metrics)
    : brokers_(std::move(brokers)),
      transport_(metrics.counter("kafka_errors_total", {{"kind", "transport"}})),
      auth_(metrics.counter("kafka_errors_total", {{"kind", "auth"}})),
      fetch_(metrics.counter("kafka_errors_total", {{"kind", "fetch"}})),
      commit_(metrics.counter("kafka_errors_total", {{"kind", "commit"}})),
      fatal_(metrics.counter("kafka_errors_total", {{"kind", "fatal"}})),
      commits_ok_(metrics.counter("kafka_offset_commits_total", {{"result", "ok"}})),
      commits_failed_(metrics.counter("kafka_offset_commits_total", {{"result", "failed"}})),
      last_commit_(metrics.gauge("kafka_last_commit_timestamp_seconds")),
      meters_(metrics) {}

void Notices::client_error(int code, std::string_view words) noexcept {
  // "1/1 brokers are down" explains less than the preceding "connection refused".
  const bool all_down = code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
  if (!all_down) {
    last_words_ = words;
    words_.take(words);
  }
  if (code == RD_KAFKA_RESP_ERR__FATAL) {
    fatal_.add(1);
    pending_ = last_words_;
  } else if (is_auth(code)) {
    auth_.add(1);
    pending_ = last_words_;
  } else {
    transport_.add(1);
    if (all_down) {
      miss_brokers();
      pending_ = unreachable_;
    }
  }
}

void Notices::miss_brokers() noexcept {
  unreachable_ = "no broker of " + brokers_ + " can be reached (" + last_words_ + ")";
}

void Notices::statistics(std::string_view json) noexcept {
  const auto up = meters_.show(json);
  if (!up) return;
  if (*up > 0) answered();
  // The client reports the loss of the last broker once, and an earlier answer may be processed after it.
  if (*up == 0 && unreachable_.empty()) miss_brokers();
}

void Notices::committed(int code) noexcept {
  if (code == RD_KAFKA_RESP_ERR__NO_OFFSET) return;
  if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
    commits_ok_.add(1);
    last_commit_.set(static_cast<double>(unix_time_ms()) / 1000.0);
    return;
  }
  commits_failed_.add(1);
  commit_.add(1);
  pending_ = "an offset commit failed: " + words_of(code);
}

void Notices::record_error(int code, std::string words) noexcept {
  (is_auth(code) ? auth_ : fetch_).add(1);
  last_words_ = words;
  if (is_auth(code)) hopeless_ = words;
  pending_ = std::move(words);
}

std::optional<Error> Notices::take(TimePoint now) noexcept {
  if (!pending_ || now < next_) return std::nullopt;
  next_ = now + quiet;
  Error error{ErrorCode::source_lost, std::move(*pending_)};
  pending_.reset();
  return error;
}

}  // namespace rivulet::stream::kafka
