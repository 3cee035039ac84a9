#include "runtime/cli/checks/checks.h"

#include <fmt/format.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/clock.h"
#include "core/printable.h"
#include "devices/device.h"
#include "runtime/cli/text.h"
#include "runtime/node/memory_plan.h"
#include "runtime/node/node_config.h"
#include "runtime/node/peer_address.h"
#include "runtime/status/http/access.h"
#include "sync/message/facts.h"
#include "sync/policy/controller.h"
#include "sync/policy/sync_cost.h"
#include "sync/transport/gloo_transport.h"

namespace rivulet::runtime::cli {
namespace {

constexpr std::uint32_t devices_tested = 64;
constexpr std::uint32_t connections_per_peer = 3;  // docs/PROTOCOL.md: meshes
constexpr const char* level_names[] = {"ok", "warn", "fail"};

/// Returns why the address cannot be bound; empty if it can.
std::string bind_trouble(const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
      error != 0) {
    return ::gai_strerror(error);
  }
  const int socket = ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes,
               sizeof yes);  // as servers do: ignores TIME_WAIT
  const bool bound = ::bind(socket, found->ai_addr, found->ai_addrlen) == 0 && ::listen(socket, 1) == 0;
  const int error = errno;
  ::close(socket);
  ::freeaddrinfo(found);
  return bound ? "" : std::generic_category().message(error);
}

/// Returns `dir` and its parents as far as they are missing, innermost first.
std::vector<std::filesystem::path> missing_folders(std::filesystem::path dir) {
  std::vector<std::filesystem::path> missing;
  std::error_code error;
  for (; !dir.empty() && !std::filesystem::exists(dir, error); dir = dir.parent_path())
    missing.push_back(dir);
  return missing;
}

}  // namespace

Check invalid_configuration(std::string name, const Error& error) {
  return {std::move(name), CheckLevel::fail, error.message,
          "run rivulet validate: it reports the file and the key"};
}

std::string render_check(const Check& check, bool colour) {
  static constexpr const char* colours[] = {"32", "33", "31"};
  const auto level = static_cast<std::size_t>(check.level);
  const auto word = fmt::format("{:<5}", level_names[level]);
  auto text =
      fmt::format("{} {:<20} {}", colour ? fmt::format("\x1b[{}m{}\x1b[0m", colours[level], word) : word,
                  check.name, printable_lines(check.value));
  if (!check.hint.empty()) text += fmt::format("\n      hint: {}", printable_lines(check.hint));
  return text;
}

std::string checks_to_json(const std::vector<Check>& checks) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& check : checks) {
    all.push_back({{"name", check.name},
                   {"level", level_names[static_cast<std::size_t>(check.level)]},
                   {"value", check.value},
                   {"hint", check.hint}});
  }
  return all.dump();
}

Check data_dir_check(const Config& config) {
  const std::string& dir = config.device.data_dir;
  const bool has_job = !config.job.name.empty();  // doctor does not need one
  if (const auto own = check_owner(dir, data_owner_of(config)); has_job && !own)
    return {"data directory", CheckLevel::fail, own.error().message,
            "choose a different directory with --data-dir"};
  std::error_code error;
  const auto made = missing_folders(dir);
  std::filesystem::create_directories(dir, error);
  const auto probe = std::filesystem::path(dir) / ".rivulet-can-write";
  std::ofstream file(probe);
  file << "x" << std::flush;
  const bool writable = !error && file.good();
  std::filesystem::remove(probe, error);
  for (const auto& folder : made)
    std::filesystem::remove(folder, error);  // removes the folders created by this check
  if (writable) return {"data directory", CheckLevel::ok, dir + " is writable", ""};
  return {"data directory", CheckLevel::fail, dir + " is not writable",
          "create it with write access for this user, or choose a different directory with --data-dir"};
}

Check port_check(const std::string& listen) {
  if (listen == "off") return {"http port", CheckLevel::ok, "off", ""};
  const auto address = parse_address(listen);
  if (!address) return {"http port", CheckLevel::fail, address.error().message, "for example 127.0.0.1:9464"};
  const auto trouble = bind_trouble(address.value().first, address.value().second);
  if (trouble.empty()) return {"http port", CheckLevel::ok, listen + " is free", ""};
  return {"http port", CheckLevel::fail, fmt::format("{}: {}", listen, trouble),
          "choose a different address or port with --http, for example --http 127.0.0.1:9465"};
}

Check token_check(const Config& config) {
  if (config.http.token_file.empty())
    return {"http token", CheckLevel::ok, "not required on " + config.http.listen, ""};
  const auto access = Access::from_file(config.http.token_file);
  if (access) return {"http token", CheckLevel::ok, config.http.token_file, ""};
  return {"http token", CheckLevel::fail, access.error().message,
          "to create a token: openssl rand -hex 24 > FILE"};
}

Check device_check(const Config& config) {
  const auto device = devices::make_device(config.device.type);
  if (!device)
    return {"device.type", CheckLevel::fail, device.error().message,
            "set device.type = \"cpu\", or see docs/howto/size.md for GPU requirements"};
  return {"device.type", CheckLevel::ok, "computes on " + std::string(device.value()->name()), ""};
}

Check memory_check(const Config& config) {
  const auto plan = plan_memory(config, builtin_catalog());
  if (!plan) return invalid_configuration("device.memory", plan.error());
  if (const auto fits = plan.value().check(); !fits)
    return invalid_configuration("device.memory", fits.error());
  return {"device.memory", CheckLevel::ok, "needs " + plan.value().text(), ""};
}

std::vector<Check> size_checks(const Config& config) {
  const GroupSizes& sizes = config.job.devices;
  if (sizes.is_fixed() && sizes.max <= devices_tested) return {};
  const auto catalog = builtin_catalog();
  const auto plan = plan_memory(config, catalog);
  const auto policy = worker_config(config, {}, {}, {}).session.policy;
  const auto controllers = sync::policy::controllers_of(policy, catalog.sync.controllers);
  if (!plan || !controllers) return {};  // other checks report them
  const std::size_t measurements = sync::policy::measurements_of(controllers.value());
  const auto facts = static_cast<double>(sync::facts_head_bytes + sizeof(float) * measurements);
  const double peers = sizes.max - 1;
  auto value = fmt::format(
      "up to {} devices: {} of facts per synchronization of a device, {} connections, {} of memory",
      sizes.max, human_bytes(sync::policy::wire_bytes(peers * facts, sizes.max)),
      connections_per_peer * (sizes.max - 1), human_bytes(plan.value().total()));
  if (sizes.wanted < sizes.max) {
    Config usual = config;
    usual.job.devices = {sizes.min, sizes.wanted, sizes.wanted};
    if (const auto less = plan_memory(usual, catalog))
      value += fmt::format(" ({} for {})", human_bytes(less.value().total()), sizes.wanted);
  }
  if (sizes.max <= devices_tested) return {{"group size", CheckLevel::ok, std::move(value), ""}};
  return {{"group size", CheckLevel::warn, std::move(value),
           fmt::format("every device connects to every other: groups are tested up to {} devices",
                       devices_tested)}};
}

std::vector<Check> peer_checks(const Config& config) {
  if (config.job.devices == 1) return {};
  const std::string name = "peer address";
  const sync::GlooConfig gloo = gloo_config(config);
  const RealClock clock;
  const auto bound = sync::local_peer_address(gloo);
  const auto wires = sync::make_gloo_connect(gloo, clock);
  if (!bound || !wires) {
    const Error& error = bound ? wires.error() : bound.error();
    // A device waits for brokers; another check reports them.
    const bool waits = error.code == ErrorCode::unavailable && config.sync.bind == "auto";
    const auto level = waits ? CheckLevel::warn : CheckLevel::fail;
    return {{name, level, error.message, "set --peer-bind to an interface or an address of this machine"}};
  }
  if (auto why = unreachable_for_peers(config); !why.empty())
    return {{name, CheckLevel::warn, std::move(why),
             "set sync.bind to \"auto\", or to an interface or address that peers can reach"}};
  const bool here = config.sync.advertise.empty() && is_this_machine(bound.value());
  return {{name, CheckLevel::ok, bound.value() + (here ? ", reachable only from this machine" : ""), ""}};
}

}  // namespace rivulet::runtime::cli
