#include "tests/support/kill_harness.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "core/stamp.h"
#include "runtime/status/http/http_server.h"
#include "tests/support/kafka_client.h"
#include "tests/support/places.h"
#include "tests/support/wait.h"

namespace rivulet::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

const char* const tally_configuration = R"(version = 1
[job]
name = "tally"
[source]
topics = ["rows"]
[decode]
format = "raw"
raw = { label = "i32", features = "f32", shape = [1], scale = 1.0, shift = 0.0 }
[batch]
max_wait = "100ms"
[model]
name = "linear"
classes = CLASSES
[sync]
policy = "every"
collective = "gather"
deadline = "2s"
[compression]
policy = "none"
[checkpoint]
every = { rounds = 40, interval = "1s" }
[log]
format = "logfmt"
)";

/// Fetches the page of a process in a network namespace: it listens on that namespace's loopback.
Result<std::string> get_inside(const std::string& space, int port, const std::string& path) {
  if (space.empty()) return runtime::http_get("127.0.0.1", port, path);
  Result<std::string> page = Error{ErrorCode::unavailable, "no namespace " + space};
  std::thread([&] {  // setns() changes only this thread
    const int fd = ::open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && ::setns(fd, CLONE_NEWNET) == 0) page = runtime::http_get("127.0.0.1", port, path);
    ::close(fd);
  })
      .join();
  return page;
}

/// A row: label and number. Each kind of invalid record has a different drop reason.
std::string record_of(int number, const std::string& fate) {
  const std::int32_t label = fate == "dropped: bad_label" ? -1 : 0;
  const float feature = fate == "dropped: nonfinite_value" ? std::numeric_limits<float>::quiet_NaN()
                                                           : static_cast<float>(number);
  std::string bytes(sizeof label + sizeof feature, 0);
  std::memcpy(bytes.data(), &label, sizeof label);
  std::memcpy(bytes.data() + sizeof label, &feature, sizeof feature);
  return fate == "dropped: wrong_shape" ? bytes.substr(0, 5) : bytes;
}

}  // namespace

KillGroup::KillGroup(const KillOptions& options)
    : options_(options), all_(static_cast<std::size_t>(options.devices)) {
  KafkaServerOptions server;
  if (options_.bits_per_second > 0) {
    auto network = Network::create({options_.devices, options_.bits_per_second});
    REQUIRE_MESSAGE(network, (network ? "" : network.error().message));
    network_ = std::move(network).value();
    server.host = network_->host_address();
  }
  auto kafka = KafkaServer::start(server);
  REQUIRE_MESSAGE(kafka, (kafka ? "" : kafka.error().message));
  kafka_ = std::move(kafka).value();
  REQUIRE(create_topic(brokers(), "rows", options_.devices));
  std::string text = tally_configuration;
  text.replace(text.find("CLASSES"), 7, std::to_string(counters() / 2));
  config_ = folder_.write("device.toml", text).string();
  for (int i = 0; i < options_.devices; ++i) {
    auto page = KillBoard::open((folder_.path() / ("board-" + std::to_string(i))).string());
    REQUIRE(page);
    at(i).page = std::move(page).value();
    at(i).port = free_port();
  }
}

KillGroup::~KillGroup() = default;

std::string KillGroup::fate_of(int partition, int k) const {
  if (deleted_.contains({partition, k})) return "hole";
  if (truncated_.contains({partition, k})) return "dropped: truncated";
  if (options_.bad_every == 0 || k % options_.bad_every != options_.bad_every / 2) return "trained";
  static const std::array reasons{"wrong_shape", "tombstone", "nonfinite_value", "bad_label"};
  return std::string("dropped: ") +
         reasons.at(static_cast<std::size_t>(k / options_.bad_every) % reasons.size());
}

/// Two per class, as in `linear` for rows of one column.
std::size_t KillGroup::counters() const {
  const int least = std::max(options_.counters, options_.devices * options_.rows_per_device);
  return 2 * (static_cast<std::size_t>(least + 1) / 2);
}

int KillGroup::good_rows(int per_device) const {
  int rows = 0;
  for (int p = 0; p < options_.devices; ++p)
    for (int k = 0; k < per_device; ++k) rows += fate_of(p, k) == "trained" ? 1 : 0;
  return rows;
}

int KillGroup::rows_in_all() const {
  return good_rows(options_.rows_per_device);
}

int KillGroup::rows_produced() const {
  return good_rows(produced_);
}

ProcessOptions KillGroup::command_of(int device) const {
  const std::string number = std::to_string(device);
  ProcessOptions options;
  options.command = {tally_device(),
                     config_,
                     "job.devices=" + std::to_string(options_.devices),
                     R"(source.kafka.properties={"bootstrap.servers" = ")" + brokers() + "\"}",
                     "device.id=device-" + number,
                     "source.partitions=[" + number + "]",
                     "device.data_dir=" + directory(device),
                     "batch.max=" + std::to_string(options_.batch_max),
                     "buffer.rows=" + std::to_string(options_.buffer_rows),
                     "http.listen=127.0.0.1:" + std::to_string(at(device).port)};
  if (network_) {
    options.command.push_back("sync.bind=" + network_->address_of(device));
    options.network_namespace = network_->namespace_of(device);
  }
  if (options_.truncated) options.command.emplace_back("source.retention=truncate-oldest");
  if (options_.copies)
    for (const char* setting : {"inject.policy=random", "inject.random.devices=1", "inject.random.share=0.2"})
      options.command.emplace_back(setting);
  for (const auto& setting : options_.settings) options.command.push_back(setting);
  options.environment = {{KillBoard::variable, (folder_.path() / ("board-" + number)).string()}};
  return options;
}

void KillGroup::start(int device, const std::vector<std::string>& more) {
  auto& d = at(device);
  d.process.reset();
  d.page->phase = KillPage::Phase::idle;
  for (auto* number : {&d.page->sent, &d.page->total, &d.page->applied}) *number = 0;
  d.page->first_applied_ns = 0;
  if (options_.copies) {
    d.page->own_first = static_cast<std::uint32_t>(device * options_.rows_per_device);
    d.page->own_end = d.page->own_first + static_cast<std::uint32_t>(options_.rows_per_device);
  }
  ProcessOptions options = command_of(device);
  options.command.insert(options.command.end(), more.begin(), more.end());
  d.started = RealClock().now();
  auto started = Process::start(options);
  REQUIRE(started);
  d.process = std::move(started).value();
}

void KillGroup::start_all() {
  for (int i = 0; i < options_.devices; ++i) start(i);
}

void KillGroup::produce(int rows) {
  const int until = std::min(options_.rows_per_device, produced_ + rows);
  std::vector<TestRecord> records;
  for (int p = 0; p < options_.devices; ++p) {
    for (int k = produced_; k < until; ++k) {
      const std::string fate = fate_of(p, k);
      TestRecord record{record_of(p * options_.rows_per_device + k, fate), "", p};
      record.tombstone = fate == "dropped: tombstone";
      records.push_back(std::move(record));
    }
  }
  produced_ = until;
  if (!records.empty()) REQUIRE(testing::produce(brokers(), "rows", records));
}

void KillGroup::delete_unread(int device, int from, int before) {
  REQUIRE(delete_records(brokers(), "rows", device, before));
  for (int k = from; k < before; ++k) deleted_.emplace(device, k);
}

std::string KillGroup::directory(int device) const {
  return (folder_.path() / ("device-" + std::to_string(device))).string();
}

std::uint64_t KillGroup::newest_saved() const {
  Stamp newest;
  for (int i = 0; i < options_.devices; ++i) {
    std::error_code error;
    for (auto it = fs::directory_iterator(checkpoints(i), error); !error && it != fs::directory_iterator();
         it.increment(error)) {
      Stamp stamp;
      char rest = 0;  // LINEAGE.STEP.ckpt
      std::istringstream name(it->path().filename().string());
      if (it->path().extension() == ".ckpt" && name >> stamp.lineage >> rest >> stamp.step)
        newest = std::max(newest, stamp);
    }
  }
  return newest.step;
}

nlohmann::json KillGroup::status(int device) const {
  const std::string space = network_ ? network_->namespace_of(device) : "";
  const auto page = get_inside(space, at(device).port, "/api/v1/status");
  auto parsed = page ? nlohmann::json::parse(page.value(), nullptr, false) : nlohmann::json();
  return parsed.is_object() ? parsed : nlohmann::json::object();
}

double KillGroup::metric(int device, const std::string& series) const {
  const std::string space = network_ ? network_->namespace_of(device) : "";
  const auto page = get_inside(space, at(device).port, "/metrics");
  if (!page) return -1;
  const auto found = page.value().find("\n" + series + " ");
  return found == std::string::npos ? -1 : std::stod(page.value().substr(found + series.size() + 2));
}

std::int64_t KillGroup::group_rows(int device) const {
  return status(device).value("group_rows", std::int64_t{-1});
}

std::int64_t KillGroup::newest_rows() const {
  std::int64_t rows = 0;
  for (int i = 0; i < options_.devices; ++i) rows = std::max(rows, group_rows(i));
  return rows;
}

std::uint64_t KillGroup::applied_in_all() const {
  std::uint64_t applied = 0;
  for (const auto& device : all_) applied += device.page->applied;
  return applied;
}

bool KillGroup::formed() const {
  for (int i = 0; i < options_.devices; ++i)
    if (status(i).value("world", 0) != options_.devices) return false;
  return true;
}

std::string KillGroup::story() {
  std::string text;
  for (int i = 0; i < options_.devices; ++i)
    if (at(i).process)
      text += "--- device-" + std::to_string(i) + ":\n" + process(i).errors() + status(i).dump() + "\n";
  return text;
}

void KillGroup::require_formed(Duration deadline) {
  const bool came = wait_until([&] { return formed(); }, deadline);
  INFO(story());
  REQUIRE(came);
}

void KillGroup::require_progress(Duration deadline) {
  const auto before = applied_in_all();
  const bool came = wait_until([&] { return applied_in_all() > before; }, deadline);
  INFO(story());
  REQUIRE(came);
}

void KillGroup::require_caught_up(Duration deadline) {
  const auto caught_up = [&] {
    for (int i = 0; i < options_.devices; ++i)
      if (group_rows(i) != rows_produced()) return false;
    return formed();
  };
  const bool came = wait_until(caught_up, deadline);
  for (int i = 0; i < options_.devices; ++i) CHECK(group_rows(i) <= rows_produced());
  INFO(story());
  REQUIRE(came);
}

std::int64_t KillGroup::least_group_rows() const {
  std::int64_t rows = group_rows(0);
  for (int i = 1; i < options_.devices; ++i) rows = std::min(rows, group_rows(i));
  return rows;
}

void KillGroup::require_all_trained(Duration patience) {
  std::int64_t rows = least_group_rows();
  const auto more = [&] { return least_group_rows() > rows; };
  while (rows < rows_in_all() && wait_until(more, patience)) rows = least_group_rows();
  INFO(story());
  REQUIRE(rows == rows_in_all());
}

void KillGroup::require_all_passed(Duration patience) {
  const auto read = [&] {
    std::int64_t offsets = 0;
    for (int i = 0; i < options_.devices; ++i) {
      const auto books = status(i).value("ledger", nlohmann::json::array());
      for (const auto& partition : books)
        if (partition.value("partition", -1) == i) offsets += partition.value("next", std::int64_t{0});
    }
    return offsets;
  };
  const std::int64_t all = std::int64_t{options_.devices} * options_.rows_per_device;
  std::int64_t offsets = read();
  while (offsets < all && wait_until([&] { return read() > offsets; }, patience)) offsets = read();
  INFO(story());
  REQUIRE(offsets == all);
}

Duration KillGroup::wait_until_back(int device, Duration deadline) {
  const bool came = wait_until([&] { return page(device).first_applied_ns != 0; }, deadline);
  INFO(story());
  REQUIRE(came);
  return Duration(page(device).first_applied_ns) - at(device).started.time_since_epoch();
}

void KillGroup::check_alive_but(int device) {
  for (int i = 0; i < options_.devices; ++i) {
    CAPTURE(i);
    if (i != device) CHECK(process(i).running());
  }
}

Duration percentile(std::vector<Duration> values, double share) {
  if (values.empty()) return Duration(0);
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size()));
  return values[std::min(at, values.size() - 1)];
}

}  // namespace rivulet::testing
