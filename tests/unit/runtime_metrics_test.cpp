#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "runtime/status/metrics/build_info.h"
#include "runtime/status/metrics/prometheus_sink.h"
#include "tests/support/aborts.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

struct Metric {
  std::string kind;
  std::string name;
};
const Metric all_metrics[] = {
#define RIVULET_METRIC(kind, name, help) {#kind, #name},
#include "core/metrics.def"
#undef RIVULET_METRIC
};

void touch(MetricsSink& sink, const Metric& m) {
  if (m.kind == "counter") sink.counter(m.name, {{"label", "value"}}).add(1);
  if (m.kind == "gauge") sink.gauge(m.name, {{"label", "value"}}).set(1);
  if (m.kind == "histogram") sink.histogram(m.name, {{"label", "value"}}).observe(1);
}

/// The value in the line that begins with `series`, -1 if missing.
double value_of(const std::string& text, const std::string& series) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(series + " ")) return std::stod(line.substr(series.size() + 1));
  }
  return -1;
}

/// (upper bound, rows at or below it) of every bucket of a histogram without labels.
std::vector<std::pair<double, double>> buckets_of(const std::string& text, const std::string& name) {
  std::vector<std::pair<double, double>> out;
  const std::string start = name + "_bucket{le=\"";
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(start)) continue;
    const std::size_t end = line.find("\"} ");
    REQUIRE(end != std::string::npos);
    out.emplace_back(std::stod(line.substr(start.size(), end - start.size())),
                     std::stod(line.substr(end + 3)));
  }
  return out;
}

/// Exit code and output of `promtool check metrics` for the text.
std::pair<int, std::string> promtool(const std::string& text) {
  const std::string path = "/tmp/rivulet_metrics_" + std::to_string(getpid());
  std::ofstream(path) << text;
  FILE* pipe = popen(("promtool check metrics < " + path + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string said;
  for (int c = 0; (c = std::fgetc(pipe)) != EOF;) said += static_cast<char>(c);
  const int status = pclose(pipe);
  std::remove(path.c_str());
  return {WEXITSTATUS(status), said};
}

}  // namespace

TEST_CASE("Metrics: a scrape of everything satisfies promtool check metrics") {
  const auto sink = make_prometheus_sink();
  for (const Metric& m : all_metrics) touch(*sink, m);
  const std::string text = sink->scrape();
  const auto [code, said] = promtool(text);
  CAPTURE(said);
  CHECK(code == 0);
  CHECK(said.empty());
  for (const Metric& m : all_metrics) {
    CAPTURE(m.name);
    CHECK(text.find("# TYPE rivulet_" + m.name + " " + m.kind + "\n") != std::string::npos);
  }
}

TEST_CASE("Metrics: promtool does complain about a wrong name") {
  CHECK(promtool("# HELP rivulet_delay_ms x\n# TYPE rivulet_delay_ms gauge\nrivulet_delay_ms 1\n").first ==
        3);
}

TEST_CASE("Metrics: the process set has the standard names and believable values") {
  const std::string text = make_prometheus_sink()->scrape();
  CHECK(value_of(text, "process_cpu_seconds_total") > 0);
  CHECK(value_of(text, "process_open_fds") >= 3);
  CHECK(value_of(text, "process_max_fds") >= value_of(text, "process_open_fds"));
  CHECK(value_of(text, "process_resident_memory_bytes") > 1e6);
  CHECK(value_of(text, "process_virtual_memory_bytes") > value_of(text, "process_resident_memory_bytes"));
  CHECK(value_of(text, "process_threads") >= 1);
  const double now = static_cast<double>(unix_time_ms()) / 1000;
  CHECK(value_of(text, "process_start_time_seconds") > now - 3600);
  CHECK(value_of(text, "process_start_time_seconds") < now + 2);
  CHECK(text.find("# TYPE process_cpu_seconds_total counter\n") != std::string::npos);
  CHECK(text.find("# TYPE process_open_fds gauge\n") != std::string::npos);
}

TEST_CASE("Metrics: the same name and labels are the same series, other labels another") {
  const auto sink = make_prometheus_sink();
  Counter& a = sink->counter("rows_dropped_total", {{"reason", "malformed"}});
  Counter& b = sink->counter("rows_dropped_total", {{"reason", "oversize"}});
  CHECK(&a == &sink->counter("rows_dropped_total", {{"reason", "malformed"}}));
  CHECK(&a != &b);
  a.add(2);
  a.add(0.5);
  sink->gauge("collective_world_size").set(4);
  const std::string text = sink->scrape();
  CHECK(value_of(text, "rivulet_rows_dropped_total{reason=\"malformed\"}") == 2.5);
  CHECK(value_of(text, "rivulet_rows_dropped_total{reason=\"oversize\"}") == 0);
  CHECK(value_of(text, "rivulet_collective_world_size") == 4);
  std::size_t families = 0;
  for (std::size_t at = 0; (at = text.find("# TYPE rivulet_rows_dropped_total", at)) != std::string::npos;
       ++at)
    ++families;
  CHECK(families == 1);
}

TEST_CASE("Metrics: histograms have at most twelve buckets, ascending, and count exactly") {
  const auto sink = make_prometheus_sink();
  for (const Metric& m : all_metrics) {
    if (m.kind != "histogram") continue;
    CAPTURE(m.name);
    auto& histogram = sink->histogram(m.name);
    for (const double v : {0.0002, 3.0, 1e6}) histogram.observe(v);
    const std::string text = sink->scrape();
    const std::vector<std::pair<double, double>> buckets = buckets_of(text, "rivulet_" + m.name);
    std::vector<double> bounds;
    double last = 0;
    for (const auto& [bound, count] : buckets) {
      bounds.push_back(bound);
      CHECK(count >= last);
      last = count;
    }
    CHECK(bounds.size() >= 8);
    CHECK(bounds.size() <= 12);
    CHECK(std::is_sorted(bounds.begin(), bounds.end()));
    CHECK(last == 3);
    CHECK(value_of(text, "rivulet_" + m.name + "_count") == 3);
  }
}

TEST_CASE(
    "Metrics: steps and exchanges between a tenth and a half of a second are told apart, and decoding too") {
  const auto sink = make_prometheus_sink();
  for (const char* name : {"step_duration_seconds", "collective_duration_seconds", "record_delay_seconds",
                           "decode_duration_seconds"}) {
    CAPTURE(name);
    auto& histogram = sink->histogram(name);
    for (const double v : {0.2, 0.3}) histogram.observe(v);
    const std::string text = sink->scrape();
    CHECK(value_of(text, "rivulet_" + std::string(name) + "_bucket{le=\"0.1\"}") == 0);
    CHECK(value_of(text, "rivulet_" + std::string(name) + "_bucket{le=\"0.25\"}") == 1);
    CHECK(value_of(text, "rivulet_" + std::string(name) + "_bucket{le=\"1\"}") == 2);
  }
  CHECK(buckets_of(sink->scrape(), "rivulet_decode_duration_seconds").front().first == 0.0001);
}

TEST_CASE("Metrics: rounds and exchanges of seconds have percentiles near what they took") {
  // Local steps and slow streams make rounds of seconds: p95 was 10 s where each took 3.
  for (const char* name : {"step_duration_seconds", "collective_duration_seconds"}) {
    CAPTURE(name);
    const auto sink = make_prometheus_sink();
    sink->histogram(name).observe(1);
    const auto bounds = buckets_of(sink->scrape(), "rivulet_" + std::string(name));
    for (double took = 0.1; took < 55; took *= 1.07) {
      const auto above = std::ranges::find_if(bounds, [&](const auto& b) { return b.first >= took; });
      REQUIRE(above != bounds.end());
      CHECK_MESSAGE(above->first <= (took < 15 ? 2.51 : 4.01) * took, took);
    }
  }
}

TEST_CASE("Metrics: what the program is made of is told by name, and none is what it has not") {
  const auto sink = make_prometheus_sink();
  BuildInfo info = build_info({});
  CHECK(info.torch == "none");
  CHECK(info.cuda == "none");
  CHECK((info.arch == "x86_64" || info.arch == "aarch64"));
  const std::vector<std::pair<std::string, std::string>> facts{
      {"LibTorch", "2.15.0+cpu"}, {"BLAS", "Intel 2024"}, {"CUDA", "12.8 (driver 570.86)"}};
  info = build_info(facts);
  CHECK(info.torch == "2.15.0+cpu");
  CHECK(info.cuda == "12.8");
  const std::vector<std::pair<std::string, std::string>> without{
      {"LibTorch", "not in this build: the only model"}, {"CUDA", ""}};
  CHECK(build_info(without).torch == "none");
  CHECK(build_info(without).cuda == "none");
  info.version = "1";
  info.revision = "r";
  info.librdkafka = "2";
  info.arch = "a";
  publish_build_info(*sink, info);
  CHECK(value_of(sink->scrape(),
                 "rivulet_build_info{arch=\"a\",cuda=\"12.8\",librdkafka=\"2\",revision=\"r\","
                 "torch=\"2.15.0+cpu\",version=\"1\"}") == 1);
  CHECK_FALSE(build_info({}).version.empty());
  CHECK_FALSE(build_info({}).librdkafka.empty());
}

TEST_CASE("Metrics: an unknown name, a wrong kind and a forbidden label are bugs") {
  const auto sink = make_prometheus_sink();
  CHECK(aborts([&] { sink->counter("rows_droped_total").add(1); }));
  CHECK(aborts([&] { sink->gauge("rows_dropped_total").set(1); }));
  CHECK(aborts([&] { sink->counter("rows_dropped_total", {{"bad-label", "x"}}).add(1); }));
  CHECK(!aborts([&] { sink->counter("rows_dropped_total", {{"reason", "any \"text\"\n"}}).add(1); }));
}

TEST_CASE("Metrics: threads may resolve, count and scrape at the same time") {
  const auto sink = make_prometheus_sink();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&sink] {
      for (int i = 0; i < 500; ++i) {
        sink->counter("train_steps_total", {{"result", i % 2 ? "applied" : "idle"}}).add(1);
        sink->histogram("batch_rows").observe(i);
        if (i % 100 == 0) CHECK(!sink->scrape().empty());
      }
    });
  }
  for (auto& thread : threads) thread.join();
  const std::string text = sink->scrape();
  CHECK(value_of(text, "rivulet_train_steps_total{result=\"applied\"}") == 1000);
  CHECK(value_of(text, "rivulet_batch_rows_count") == 2000);
}

TEST_CASE("Metrics: a counter or gauge that is removed is gone, and can come again") {
  const auto sink = make_prometheus_sink();
  const auto of_rail = [&] { return value_of(sink->scrape(), "rivulet_energy_joules_total{rail=\"a\"}"); };
  sink->counter("energy_joules_total", {{"rail", "a"}}).add(7);
  sink->remove("energy_joules_total", {{"rail", "b"}});
  CHECK(of_rail() == 7);
  sink->remove("energy_joules_total", {{"rail", "a"}});
  CHECK(of_rail() == -1);
  sink->counter("energy_joules_total", {{"rail", "a"}}).add(1);
  CHECK(of_rail() == 1);
  sink->gauge("temperature_celsius", {{"zone", "cpu"}}).set(40);
  sink->gauge("temperature_celsius", {{"zone", "gpu"}}).set(50);
  sink->remove("temperature_celsius", {{"zone", "cpu"}});
  sink->remove("temperature_celsius", {{"zone", "never"}});
  CHECK(value_of(sink->scrape(), "rivulet_temperature_celsius{zone=\"cpu\"}") == -1);
  CHECK(value_of(sink->scrape(), "rivulet_temperature_celsius{zone=\"gpu\"}") == 50);
  sink->gauge("temperature_celsius", {{"zone", "cpu"}}).set(41);
  CHECK(value_of(sink->scrape(), "rivulet_temperature_celsius{zone=\"cpu\"}") == 41);
}
