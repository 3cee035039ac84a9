#include "tests/support/device_group.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/clock.h"
#include "runtime/status/http/http_server.h"
#include "tests/support/places.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

namespace rivulet::testing {
namespace {

using namespace std::chrono_literals;

const std::string mnist = source_path("examples/mnist");
const std::string token = "only-for-these-tests";  // required for pages beyond the loopback

ProcessOptions rivulet_with(const std::vector<std::string>& arguments) {
  ProcessOptions options;
  options.command = {rivulet_binary()};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  return options;
}

}  // namespace

std::unique_ptr<Process> start_rivulet(const std::vector<std::string>& arguments,
                                       const std::string& network_namespace) {
  ProcessOptions options = rivulet_with(arguments);
  options.network_namespace = network_namespace;
  auto started = Process::start(options);
  REQUIRE(started);
  return std::move(started).value();
}

RunOutput run_rivulet(const std::vector<std::string>& arguments, Duration deadline) {
  return run(rivulet_with(arguments), deadline);
}

DeviceGroup::DeviceGroup(DeviceGroupOptions options)
    : options_(std::move(options)),
      brokers_(options_.brokers),
      devices_(static_cast<std::size_t>(options_.devices)) {
  if (options_.network != nullptr) static_cast<void>(folder_.write("token", token));
  if (brokers_.empty()) start_broker();
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    devices_[i].http_port = free_port();
    devices_[i].brokers = brokers_;
    if (options_.network == nullptr) continue;
    if (static_cast<int>(i) == options_.beside_broker) {
      devices_[i].brokers = "127.0.0.1" + brokers_.substr(brokers_.rfind(':'));
      continue;
    }
    devices_[i].host = options_.network->address_of(static_cast<int>(i));
    devices_[i].network_namespace = options_.network->namespace_of(static_cast<int>(i));
  }
}

void DeviceGroup::start_broker() {
  broker_ = start_rivulet(
      {"broker", "--job", "mnist", "--topic", options_.topic + ":" + std::to_string(options_.devices)});
  REQUIRE(broker_->wait_for_output("runs until", 30s));
  const std::string line = broker_->output().substr(0, broker_->output().find('\n'));
  brokers_ = line.substr(line.find('=') + 1);
}

void DeviceGroup::start_on(int partition, int device, const std::vector<std::string>& more) {
  Member& member = devices_.at(static_cast<std::size_t>(device));
  std::vector<std::string> arguments = {"run", "--config", mnist + "/device.toml", "--json"};
  const std::vector<std::pair<std::string, std::string>> usual = {
      {"--id", name(device)},
      {"--partitions", std::to_string(partition)},
      {"--devices", std::to_string(options_.devices)},
      {"--topic", options_.topic},
      {"--brokers", member.brokers},
      {"--data-dir", directory(device)},
      {"--http", member.host + ":" + std::to_string(member.http_port)}};
  for (const auto& [flag, value] : usual)
    if (std::find(more.begin(), more.end(), flag) == more.end())
      arguments.insert(arguments.end(), {flag, value});
  arguments.insert(arguments.end(),
                   {"--set", "log.format=logfmt", "--set", "sync.on_peer_loss=" + options_.on_peer_loss});
  if (options_.network != nullptr)
    arguments.insert(arguments.end(), {"--set", "http.token_file=" + (folder_.path() / "token").string()});
  arguments.insert(arguments.end(), options_.arguments.begin(), options_.arguments.end());
  arguments.insert(arguments.end(), more.begin(), more.end());
  member.process.reset();  // the old process must end before the new one takes its port
  member.process = start_rivulet(arguments, member.network_namespace);
}

void DeviceGroup::start_all() {
  for (int i = 0; i < options_.devices; ++i) start(i);
}

void DeviceGroup::feed(int rows_per_second, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {
      "feed",    mnist + "/data", "--brokers", brokers_,
      "--topic", options_.topic,  "--rates",   std::to_string(rows_per_second),
      "--repeat"};
  if (broker_) arguments.insert(arguments.end(), {"--job", "mnist", "--pace"});
  arguments.insert(arguments.end(), more.begin(), more.end());
  feeder_ = start_rivulet(arguments);
}

bool DeviceGroup::formed(Duration deadline) {
  const RealClock clock;
  const auto until = clock.now() + deadline;
  for (Member& member : devices_) {
    const Duration left = std::max<Duration>(until - clock.now(), 1ms);
    if (!member.process->wait_for_output("group formed", left)) return false;
  }
  return true;
}

nlohmann::json DeviceGroup::status_of(const Member& member) {
  const auto page = runtime::http_get(member.host, member.http_port, "/api/v1/status", "Bearer " + token);
  const auto status = page ? nlohmann::json::parse(page.value(), nullptr, false) : nlohmann::json();
  return status.is_object() ? status : nlohmann::json();
}

nlohmann::json DeviceGroup::status(int device) const {
  return status_of(devices_.at(static_cast<std::size_t>(device)));
}

std::string DeviceGroup::metrics(int device) const {
  const Member& member = devices_.at(static_cast<std::size_t>(device));
  const auto page = runtime::http_get(member.host, member.http_port, "/metrics", "Bearer " + token);
  return page ? page.value() : "";
}

std::int64_t DeviceGroup::steps_of(const Member& member) {
  const auto status = status_of(member);
  return status.is_object() ? status.value("steps", std::int64_t{-1}) : -1;
}

bool DeviceGroup::trained(int steps, Duration deadline) {
  for (const Member& member : devices_) {
    if (!wait_until([&] { return steps_of(member) >= steps || !member.process->running(); }, deadline))
      return false;
    if (!member.process->running()) return false;
  }
  return true;
}

bool DeviceGroup::idle(Duration deadline) {
  const RealClock clock;
  std::int64_t last = -2;
  TimePoint since = clock.now();
  return wait_until(
      [&] {
        const std::int64_t now = steps_of(devices_.front());
        if (now != last || now < 0) since = clock.now();
        last = now;
        return clock.now() - since > 1s;
      },
      deadline);
}

nlohmann::json DeviceGroup::summary(int device) {
  const auto parsed = nlohmann::json::parse(last_line(this->device(device).output()), nullptr, false);
  INFO(this->device(device).output());
  REQUIRE(parsed.is_object());
  return parsed;
}

std::string DeviceGroup::story() {
  std::string text;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    if (devices_[i].process) text += name(static_cast<int>(i)) + ":\n" + devices_[i].process->errors();
  }
  return text;
}

}  // namespace rivulet::testing
