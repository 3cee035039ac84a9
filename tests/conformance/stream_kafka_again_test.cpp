// A client that delivers records twice: the source filters the repetitions.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <librdkafka/rdkafka.h>

#include <optional>

#include "core/check.h"
#include "tests/support/kafka_source_fixture.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

/// The next call fetches partition 0 of topic "t" again from here, unknown to the source.
std::optional<std::int64_t> go_back_to;
int rolled_back = 0;

/// A busy client rejects a seek: retries it.
void roll_back(rd_kafka_t* client) {
  for (int tries = 0; go_back_to && tries < 50; ++tries) {
    auto* list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, "t", 0)->offset = *go_back_to;
    if (auto* error = rd_kafka_seek_partitions(client, list, 1000)) {
      rd_kafka_error_destroy(error);
    } else if (list->elems[0].err == RD_KAFKA_RESP_ERR_NO_ERROR) {
      ++rolled_back;
      go_back_to.reset();
    }
    rd_kafka_topic_partition_list_destroy(list);
  }
}

std::vector<std::string> numbers(int from, int to) {
  std::vector<std::string> out;
  for (int i = from; i < to; ++i) out.push_back(std::to_string(i));
  return out;
}

}  // namespace

/// Replaces the library's function in this program: first does what the test requests, then calls the
/// original.
extern "C" rd_kafka_message_t* rd_kafka_consumer_poll(rd_kafka_t* client, int timeout_ms) {
  static const auto real =
      reinterpret_cast<decltype(&rd_kafka_consumer_poll)>(dlsym(RTLD_NEXT, "rd_kafka_consumer_poll"));
  RIVULET_CHECK(real != nullptr, "librdkafka is a shared library");
  if (go_back_to) roll_back(client);
  return real(client, timeout_ms);
}

TEST_CASE("Kafka source: records that a client delivers again are not handed out again") {
  const auto broker = start_broker({{"t", 1}});
  REQUIRE(testing::produce(broker->bootstrap_servers(), "t", numbered(0, 60)));
  Opened opened(config_for(broker->bootstrap_servers(), "t"));
  CHECK(opened.read(20, 5s) == numbers(0, 20));
  rolled_back = 0;
  for (const auto& [from, to] : {std::pair{20, 25}, std::pair{25, 60}}) {
    go_back_to = from - 15;
    CHECK(opened.read(static_cast<std::size_t>(to - from), 5s) == numbers(from, to));
  }
  CHECK(rolled_back == 2);
  CHECK(opened.source->partitions()[0].next_offset == 60);
  CHECK(opened.metrics["kafka_records_consumed_total/t"] == 60);  // also counted once
  CHECK(opened.errors.empty());
}
