#include "tests/support/kill_harness.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "devices/device.h"
#include "runtime/http/http_server.h"
#include "runtime/state_file.h"
#include "tests/support/kafka_client.h"
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
raw = { label = "f32", features = "f32", shape = [1], scale = 1.0, shift = 0.0 }
[batch]
max_wait = "100ms"
[model]
name = "tally"
[train]
loss = "mse"
[sync]
deadline = "2s"
[checkpoint]
every = { rounds = 40, interval = "1s" }
[log]
format = "logfmt"
)";

/// The page of a process in a namespace of its own is on that one's loopback.
Result<std::string> get_inside(const std::string& space, int port, const std::string& path) {
  if (space.empty()) return runtime::http_get("127.0.0.1", port, path);
  Result<std::string> page = Error{ErrorCode::unavailable, "no namespace " + space};
  std::thread([&] {  // its namespace goes with the thread
    const int fd = ::open(("/run/netns/" + space).c_str(), O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && ::setns(fd, CLONE_NEWNET) == 0) page = runtime::http_get("127.0.0.1", port, path);
    ::close(fd);
  })
      .join();
  return page;
}

/// Waits without sleeping between looks: a moment may last for a millisecond.
template <class Done>
bool spin_until(Done done, Duration deadline) {
  const RealClock clock;
  const TimePoint end = clock.now() + deadline;
  while (!done()) {
    if (clock.now() >= end) return false;
    std::this_thread::sleep_for(50us);
  }
  return true;
}

bool has_temporary(const std::string& folder) {
  std::error_code error;
  for (auto it = fs::directory_iterator(folder, error); !error && it != fs::directory_iterator();
       it.increment(error))
    if (it->path().extension() == ".tmp") return true;
  return false;
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
  config_ = folder_.write("device.toml", tally_configuration).string();
  for (int i = 0; i < options_.devices; ++i) {
    auto page = KillBoard::open((folder_.path() / ("board-" + std::to_string(i))).string());
    REQUIRE(page);
    at(i).page = std::move(page).value();
    at(i).port = free_port();
  }
}

KillGroup::~KillGroup() = default;

bool KillGroup::is_bad(int number) const {
  const int place = number % options_.rows_per_device;
  return options_.bad_every > 0 && place % options_.bad_every == options_.bad_every / 2;
}

int KillGroup::counters() const {
  return std::max(options_.counters, options_.devices * options_.rows_per_device);
}

int KillGroup::good_rows(int per_device) const {
  int rows = 0;
  for (int k = 0; k < per_device; ++k) rows += is_bad(k) ? 0 : options_.devices;
  return rows;
}

int KillGroup::rows_in_all() const {
  return good_rows(options_.rows_per_device);
}

int KillGroup::rows_produced() const {
  return good_rows(produced_);
}

void KillGroup::start(int device) {
  auto& d = at(device);
  d.process.reset();
  d.page->phase = KillPage::Phase::idle;
  for (auto* number : {&d.page->sent, &d.page->total, &d.page->applied}) *number = 0;
  d.page->first_applied_ns = 0;
  const std::string number = std::to_string(device);
  ProcessOptions options;
  options.command = {TALLY_DEVICE,
                     config_,
                     "job.devices=" + std::to_string(options_.devices),
                     R"(source.kafka.properties={"bootstrap.servers" = ")" + brokers() + "\"}",
                     "device.id=device-" + number,
                     "source.partitions=[" + number + "]",
                     "device.data_dir=" + directory(device),
                     "batch.max=" + std::to_string(options_.batch_max),
                     "buffer.rows=" + std::to_string(options_.buffer_rows),
                     "http.listen=127.0.0.1:" + std::to_string(d.port)};
  if (network_) {
    options.command.push_back("sync.bind=" + network_->address_of(device));
    options.network_namespace = network_->namespace_of(device);
  }
  for (const auto& setting : options_.settings) options.command.push_back(setting);
  options.environment = {
      {"TALLY_ROWS", std::to_string(counters())},
      {KillBoard::variable, (folder_.path() / ("board-" + std::to_string(device))).string()}};
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
      const int number = p * options_.rows_per_device + k;
      const std::array<float, 2> row{0, static_cast<float>(number)};
      const std::string bytes(reinterpret_cast<const char*>(row.data()), sizeof row);
      records.push_back({is_bad(number) ? bytes.substr(0, 5) : bytes, "", p});
    }
  }
  produced_ = until;
  if (!records.empty()) REQUIRE(testing::produce(brokers(), "rows", records));
}

std::string KillGroup::directory(int device) const {
  return (folder_.path() / ("device-" + std::to_string(device))).string();
}

std::uint64_t KillGroup::newest_saved() const {
  Stamp newest;
  for (int i = 0; i < options_.devices; ++i) {
    std::error_code error;
    for (auto it = fs::directory_iterator(directory(i) + "/checkpoints", error);
         !error && it != fs::directory_iterator(); it.increment(error)) {
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

void KillGroup::require_all_trained(Duration patience) {
  const auto least_rows = [&] {
    std::int64_t rows = rows_in_all();
    for (int i = 0; i < options_.devices; ++i) rows = std::min(rows, group_rows(i));
    return rows;
  };
  std::int64_t rows = least_rows();
  const auto more = [&] { return least_rows() > rows; };
  while (rows < rows_in_all() && wait_until(more, patience)) rows = least_rows();
  INFO(story());
  REQUIRE(rows == rows_in_all());
}

bool KillGroup::wait_for(int device, Moment moment, Rng& rng, Duration deadline) {
  const KillPage& page = *at(device).page;
  switch (moment) {
    case Moment::any: return true;
    case Moment::idle: return spin_until([&] { return page.phase == KillPage::Phase::idle; }, deadline);
    case Moment::compute: return spin_until([&] { return page.phase == KillPage::Phase::compute; }, deadline);
    case Moment::checkpoint: return wait_for_checkpoint(device, deadline);
    case Moment::payload: break;
  }
  const double share = 0.1 + 0.6 * rng.uniform();
  return spin_until(
      [&] {
        const auto past = static_cast<std::uint64_t>(share * static_cast<double>(page.total));
        return page.inside_payload() && page.sent > past;
      },
      deadline);
}

/// A file is written under another name first: its appearance is the beginning.
bool KillGroup::wait_for_checkpoint(int device, Duration deadline) {
  const std::string folder = directory(device) + "/checkpoints";
  const int events = ::inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
  const auto watching = [&] { return ::inotify_add_watch(events, folder.c_str(), IN_CREATE) >= 0; };
  pollfd created{events, POLLIN, 0};
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(deadline).count();
  const bool came =
      events >= 0 && wait_until(watching, deadline) && ::poll(&created, 1, static_cast<int>(ms)) == 1;
  if (events >= 0) ::close(events);
  return came;
}

bool KillGroup::kill(int device) {
  process(device).send_signal(SIGKILL);
  REQUIRE(process(device).wait(10s));
  const bool inside = page(device).inside_payload();
  inside_payload_ += inside ? 1 : 0;
  inside_checkpoint_ += has_temporary(directory(device) + "/checkpoints") ? 1 : 0;
  return inside;
}

bool KillGroup::kill_at(int device, Moment moment, Rng& rng, Duration deadline) {
  if (!wait_for(device, moment, rng, deadline)) return false;
  kill(device);
  return true;
}

void KillGroup::kill_all() {
  for (auto& device : all_) device.process->send_signal(SIGKILL);
  for (int i = 0; i < options_.devices; ++i) kill(i);
}

void KillGroup::wipe(int device) {
  fs::remove_all(directory(device));
}

void KillGroup::stop(int device) {
  process(device).send_signal(SIGSTOP);
}

void KillGroup::go_on(int device) {
  process(device).send_signal(SIGCONT);
}

void KillGroup::cut_off(int device) {
  REQUIRE(network_ != nullptr);
  REQUIRE(network_->set_connected(device, false));
}

void KillGroup::plug_in(int device) {
  REQUIRE(network_ != nullptr);
  REQUIRE(network_->set_connected(device, true));
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

RunHistory KillGroup::check_exact() {
  for (auto& device : all_) device.process->send_signal(SIGTERM);
  std::set<std::string> digests;
  std::set<std::uint64_t> steps;
  std::vector<std::string> directories;
  for (int i = 0; i < options_.devices; ++i) {
    std::string digest;
    steps.insert(check_final_state(i, digest));
    digests.insert(digest);
    directories.push_back(directory(i));
  }
  CHECK(digests.size() == 1);
  REQUIRE(steps.size() == 1);
  RunHistory history = read_history(directories, *steps.begin());
  std::string wrong;
  for (const auto& words : history.wrong) wrong += words + "\n";
  INFO(story());
  INFO(wrong);
  CHECK(history.wrong.empty());
  CHECK(history.rows == static_cast<std::uint64_t>(rows_in_all()));
  for (int p = 0; p < options_.devices; ++p) CHECK(history.next_offset[p] == options_.rows_per_device);
  return history;
}

/// Returns its step.
std::uint64_t KillGroup::check_final_state(int device, std::string& digest) {
  const auto ended = process(device).wait(30s);
  INFO(story());
  REQUIRE(ended);
  CHECK(ended->code == 0);
  const auto host = devices::make_host_device();
  devices::ModelLayout layout;
  layout.parameters = static_cast<std::size_t>(counters());
  const auto read = runtime::read_state_file(directory(device) + "/final.state", {"tally", layout, *host});
  REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
  digest = read.value().digest.hex();
  const auto& state = read.value().state;
  const auto counts = state.model.parameters().as<float>();
  int lost = 0;
  int again = 0;
  int invented = 0;
  for (int k = 0; k < counters(); ++k) {
    const bool row = k < options_.devices * options_.rows_per_device && !is_bad(k);
    const float count = counts[static_cast<std::size_t>(k)];
    lost += row && count < 0.5F ? 1 : 0;
    again += row && count > 1.5F ? 1 : 0;
    invented += !row && count != 0 ? 1 : 0;
  }
  CHECK(lost == 0);
  CHECK(again == 0);
  CHECK(invented == 0);
  for (int p = 0; p < options_.devices; ++p)
    CHECK(state.partitions.at({0, p}).next == RowCursor{options_.rows_per_device, 0});
  return state.stamp.step;
}

Duration percentile(std::vector<Duration> values, double share) {
  if (values.empty()) return Duration(0);
  std::sort(values.begin(), values.end());
  const auto at = static_cast<std::size_t>(share * static_cast<double>(values.size()));
  return values[std::min(at, values.size() - 1)];
}

}  // namespace rivulet::testing
