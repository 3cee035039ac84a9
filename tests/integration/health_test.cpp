// Ready means useful: conditions that a real device reports when it runs without results.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <csignal>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/clock.h"
#include "runtime/status/http/http_server.h"
#include "tests/support/kafka_client.h"
#include "tests/support/prometheus.h"
#include "tests/support/rivulet_program.h"
#include "tests/support/shared_kafka.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

/// A fault must be named within a minute; the rest is for a loaded machine.
constexpr auto a_minute = 90s;

/// A job of one device with its own topic of rows "feature,feature,class".
class Job {
 public:
  Job(const std::string& name, int partitions) : name_(name), port_(free_port()) {
    REQUIRE(create_topic(brokers(), name, partitions));
    config_ =
        folder_
            .write("device.toml",
                   "version = 1\n[job]\nname = \"" + name + "\"\ndevices = 1\n[source]\ntopics = [\"" + name +
                       "\"]\n[decode]\nformat = \"csv\"\n[decode.csv]\nscale = 1\nshift = 0\nfeatures = "
                       "[\"0\", \"1\"]\ntarget = \"2\"\n[model]\nname = \"linear\"\nclasses = 3\n")
            .string();
  }
  static std::string brokers() { return shared_kafka().brokers(); }
  [[nodiscard]] std::vector<std::string> with(std::vector<std::string> words,
                                              const std::vector<std::string>& more = {}) const {
    for (const std::string& word :
         {std::string("--config"), config_, std::string("--brokers"), brokers(), std::string("--data-dir"),
          (folder_.path() / "data").string(), std::string("--http"), "127.0.0.1:" + std::to_string(port_)})
      words.push_back(word);
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  void start(const std::vector<std::string>& more = {}) {
    auto started = Process::start(rivulet_with(with({"run"}, more)));
    REQUIRE(started);
    device_ = std::move(started).value();
  }
  void feed(const std::string& row, int rows = 5) const {
    REQUIRE(
        produce(brokers(), name_, std::vector<TestRecord>(static_cast<std::size_t>(rows), {.value = row})));
  }
  [[nodiscard]] runtime::HttpAnswer page(const std::string& path) const {
    auto answer = runtime::http_request("127.0.0.1", port_, path, "");
    return answer ? std::move(answer).value() : runtime::HttpAnswer{};
  }
  [[nodiscard]] nlohmann::json status() const {
    return nlohmann::json::parse(page("/api/v1/status").body, nullptr, false);
  }
  /// In all places, with the same text.
  void check_not_ready(const std::string& condition, const std::string& phrase) const {
    INFO(name_, ": ", page("/readyz").body, " ", status().dump());
    CHECK(wait_until([&] { return page("/readyz").status == 503 && contains(page("/readyz").body, phrase); },
                     a_minute));
    CHECK(contains(page("/metrics").body,
                   "rivulet_health_condition{condition=\"" + condition + "\",grade=\"useless\"} 1\n"));
    CHECK(contains(page("/metrics").body, "rivulet_ready 0\n"));
    CHECK(contains(page("/").body, "<p id=\"state\" class=\"state bad\">not ready: "));
    const auto said = rivulet_run({"status", "127.0.0.1:" + std::to_string(port_)});
    CHECK(said.status.code == 1);
    CHECK(contains(first_line(said.output), phrase));
  }
  [[nodiscard]] bool ready() const { return page("/readyz").status == 200; }
  [[nodiscard]] Process& device() { return *device_; }
  [[nodiscard]] const std::string& topic() const { return name_; }
  [[nodiscard]] std::string target() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  TempDir folder_;
  std::string name_, config_;
  int port_;
  std::unique_ptr<Process> device_;
};

}  // namespace

TEST_CASE("Health: each way to be of no use is named on every page and by an alert") {
  Job refused("refused", 1);
  Job gone("gone", 1);
  Job diverged("diverged", 1);
  Job unread("unread", 1);
  for (Job* job : {&refused, &gone, &diverged}) {
    job->feed("0.5,0.25,1");
    job->start();
  }
  unread.start({"--set", "source.start=100"});
  for (Job* job : {&refused, &gone, &diverged}) {
    CAPTURE(job->topic());
    CHECK(wait_until([&] { return job->ready() && job->status().value("rows_trained", 0) > 0; }, 60s));
  }
  const Prometheus prometheus({refused.target(), gone.target(), diverged.target(), unread.target()});
  const RealClock clock;
  const TimePoint since = clock.now();
  REQUIRE(delete_topic(Job::brokers(), "gone"));
  std::map<const Job*, double> not_ready, alerted;
  const auto all_alerted = [&] {
    for (const Job* job : {&refused, &gone, &diverged, &unread}) {
      const double now = to_seconds(clock.now() - since);
      if (!job->ready()) not_ready.try_emplace(job, now);
      if (prometheus.fires("RivuletNotReady", job->target())) alerted.try_emplace(job, now);
    }
    return alerted.size() == 4;
  };
  CHECK_MESSAGE(wait_until(
                    [&] {
                      refused.feed("no row at all");
                      diverged.feed("1e30,-1e30,2");
                      std::this_thread::sleep_for(900ms);
                      return all_alerted();
                    },
                    a_minute),
                prometheus.errors());
  for (const Job* job : {&refused, &gone, &diverged, &unread})
    fmt::print("figure: {} = not ready {:.0f} s, alert {:.0f} s\n", job->topic(), not_ready[job],
               alerted[job]);
  unread.check_not_ready("partition_unread", "unread:0 is not read: ");
  refused.check_not_ready("rows_refused", "rows were rejected, no row was valid for ");
  diverged.check_not_ready("batches_lost", "the model has diverged");
  gone.check_not_ready("topic_gone", "topic \"gone\" is gone");

  refused.feed("0.5,0.25,1", 50);
  CHECK_MESSAGE(wait_until([&] { return refused.ready(); }, a_minute), refused.status().dump());
}

TEST_CASE("Health: partitions that nobody claims are named, from the beginning and when they are added") {
  Job job("wide", 2);
  job.feed("0.5,0.25,1");
  const auto checked = rivulet_run(job.with({"validate", "--environment"}));
  CHECK(checked.status.code == 0);
  CHECK_MESSAGE(contains(checked.output, "no device claims wide:1"), checked.output);
  job.start();
  const auto names = [&](const std::vector<std::string>& all) {
    return wait_until(
        [&] {
          const auto status = job.status();
          return status.is_object() &&
                 status.value("unclaimed_partitions", std::vector<std::string>()) == all;
        },
        a_minute);
  };
  CHECK_MESSAGE(names({"wide:1"}), job.status().dump());
  CHECK(job.ready());
  CHECK(contains(job.page("/").body, "no device of the group claims wide:1"));
  CHECK(contains(job.page("/metrics").body, "rivulet_unclaimed_partitions 1\n"));
  const auto added = shared_kafka().tool("org.apache.kafka.tools.TopicCommand",
                                         {"--alter", "--topic", "wide", "--partitions", "3"});
  REQUIRE_MESSAGE(added.status.code == 0, added.output);
  CHECK_MESSAGE(names({"wide:1", "wide:2"}), job.status().dump());
}

TEST_CASE("Health: validate does not call a stream valid whose rows are all refused") {
  const Job job("refusals", 1);
  job.feed("no row at all", 200);
  const auto said = rivulet_run(job.with({"validate", "--environment"}));
  CHECK(said.status.code == 69);
  CHECK_MESSAGE(contains(said.output, "200 of 200 rows are dropped"), said.output);
  CHECK_MESSAGE(contains(last_line(said.output), "cannot run here: 1 check failed"), said.output);
  CHECK_FALSE(contains(said.output, "is valid"));
}

TEST_CASE("Health: in a pipe a run says every ten seconds what it does") {
  Job job("piped", 1);
  job.feed("0.5,0.25,1");
  job.start();
  const RealClock clock;
  const TimePoint began = clock.now();
  const auto lines = [&job] {
    const std::string output = job.device().output();
    int count = 0;
    const std::string each = " rows/s, waiting ";
    for (auto at = output.find(each); at != std::string::npos; at = output.find(each, at + 1)) ++count;
    return count;
  };
  CHECK(wait_until([&] { return lines() >= 2; }, 60s));
  CHECK(lines() <= to_seconds(clock.now() - began) / 10 + 1);
  CHECK(contains(job.device().output(), "trained 5"));
  CHECK_FALSE(contains(job.device().output(), "\x1b"));
  job.device().send_signal(SIGTERM);
  CHECK(job.device().wait(30s));
}
