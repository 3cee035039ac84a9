#include <doctest/doctest.h>

#include "core/metrics.h"
#include "stream/kafka/notices.h"

using namespace rivulet;
using namespace rivulet::stream::kafka;
using namespace std::chrono_literals;

namespace {
constexpr int transport = -195;         // RD_KAFKA_RESP_ERR__TRANSPORT
constexpr int all_brokers_down = -187;  // RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN
constexpr int not_authorized = 29;      // RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED
}  // namespace

TEST_CASE("Notices: a client that complains all the time is heard at once and then every five seconds") {
  NullMetrics metrics;
  Notices notices("kafka:9092", metrics);
  CHECK_FALSE(notices.take(TimePoint(1s)).has_value());
  int heard = 0;
  for (int tenth = 10; tenth < 310; ++tenth) {
    notices.client_error(transport, "Connection refused");
    notices.client_error(all_brokers_down, "1/1 brokers are down");
    const auto notice = notices.take(TimePoint(100ms * tenth));
    if (!notice) continue;
    ++heard;
    CHECK(notice->code == ErrorCode::source_lost);
    CHECK(notice->message == "no broker of kafka:9092 can be reached (Connection refused)");
  }
  CHECK(heard == 6);
}

TEST_CASE("Notices: one broken connection is counted but not worth a sentence; a missing right is final") {
  NullMetrics metrics;
  Notices notices("kafka:9092", metrics);
  notices.client_error(transport, "Disconnected");
  CHECK_FALSE(notices.take(TimePoint(1s)).has_value());
  CHECK(notices.last_words() == "Disconnected");
  CHECK(notices.hopeless().empty());
  notices.record_error(not_authorized, "topic \"t\", partition 0: Topic authorization failed");
  CHECK(notices.hopeless() == "topic \"t\", partition 0: Topic authorization failed");
}

TEST_CASE("Notices: commits are silent unless they fail") {
  NullMetrics metrics;
  Notices notices("kafka:9092", metrics);
  notices.committed(0);
  CHECK_FALSE(notices.take(TimePoint(1s)).has_value());
  notices.committed(16);
  CHECK(notices.take(TimePoint(1s))->message.find("an offset commit failed: ") == 0);
}

TEST_CASE("Notices: the brokers are out of reach from when the last is gone until one is there again") {
  NullMetrics metrics;
  Notices notices("kafka:9092", metrics);
  notices.client_error(transport, "Disconnected");
  CHECK(notices.unreachable().empty());
  notices.client_error(all_brokers_down, "1/1 brokers are down");
  CHECK(notices.unreachable() == "no broker of kafka:9092 can be reached (Disconnected)");
  static_cast<void>(notices.take(TimePoint(1s)));
  notices.statistics(R"({"brokers":{"k":{"nodeid":1,"state":"TRY_CONNECT"}}})");
  CHECK_FALSE(notices.unreachable().empty());
  notices.statistics(R"({"brokers":{"k":{"nodeid":1,"state":"UP"}}})");
  CHECK(notices.unreachable().empty());
  notices.client_error(all_brokers_down, "1/1 brokers are down");
  notices.answered();
  CHECK(notices.unreachable().empty());
  // The request was answered before the last connection closed, and the client does not report it again.
  notices.statistics(R"({"brokers":{"k":{"nodeid":1,"state":"TRY_CONNECT"}}})");
  CHECK(notices.unreachable() == "no broker of kafka:9092 can be reached (Disconnected)");
  notices.statistics("{}");
  CHECK_FALSE(notices.unreachable().empty());
}

TEST_CASE("Notices: the last words about a broker are kept by its address, until it answers") {
  NullMetrics metrics;
  Notices notices("kafka:9092", metrics);
  notices.client_error(transport, "sasl_ssl://kafka-2:9092/2: Failed to resolve 'kafka-2:9092'");
  notices.client_error(transport, "kafka-3:9092/3: Connection refused");
  notices.client_error(all_brokers_down, "2/2 brokers are down");
  notices.client_error(transport, "kafka-3:9092/3: Connect to 10.0.0.3 failed: No route to host");
  CHECK(notices.words_about("kafka-2:9092") == "Failed to resolve 'kafka-2:9092'");
  CHECK(notices.words_about("kafka-3:9092") == "Connect to 10.0.0.3 failed: No route to host");
  CHECK(notices.words_about("kafka:9092").empty());
  notices.answered("kafka-3:9092");
  CHECK(notices.words_about("kafka-3:9092").empty());
  for (int i = 0; i < 1000; ++i) notices.client_error(transport, "b" + std::to_string(i) + ":1/1: refused");
  CHECK(notices.words_about("b10:1") == "refused");
  CHECK(notices.words_about("b999:1").empty());  // a bound
}
