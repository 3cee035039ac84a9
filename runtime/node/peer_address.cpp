#include "runtime/node/peer_address.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "runtime/node/control_topic.h"
#include "runtime/node/plain_brokers.h"
#include "stream/topics.h"

namespace rivulet::runtime {
namespace {

/// Returns the hosts where the cluster advertises its brokers. Other devices reach a local broker there, so
/// this device must be reachable on that network. Empty if the brokers do not answer.
std::vector<std::string> hosts_for_all(const Config& config) {
  static constexpr Duration patience = std::chrono::seconds(2);
  const auto& properties = config.source.kafka_properties;
  auto hosts = broker_hosts(properties);
  if (!std::ranges::all_of(hosts, is_this_machine)) return hosts;
  const auto advertised =
      stream::advertised_hosts(properties, ControlTopic::name_of(config.job.name), patience);
  return advertised ? advertised.value() : std::vector<std::string>();
}

}  // namespace

sync::GlooConfig gloo_config(const Config& config) {
  sync::GlooConfig gloo;
  gloo.transport.progress_deadline = config.sync.deadline;
  gloo.bind = config.sync.bind;
  gloo.towards = [config] { return hosts_for_all(config); };
  gloo.advertise = config.sync.advertise;
  gloo.port = config.sync.port;
  return gloo;
}

std::string unreachable_for_peers(const Config& config) {
  if (config.job.devices == 1 || !config.sync.advertise.empty() || config.sync.bind == "auto") return {};
  sync::GlooConfig gloo = gloo_config(config);
  const auto bound = sync::local_peer_address(gloo);
  if (!bound || !is_this_machine(bound.value())) return {};
  gloo.bind = "auto";
  gloo.towards = [&] { return broker_hosts(config.source.kafka_properties); };
  const auto towards = sync::local_peer_address(gloo);
  if (!towards || is_this_machine(towards.value())) return {};
  return fmt::format(
      "peers on other machines cannot reach {} (sync.bind = \"{}\"); this device reaches the brokers from {}",
      bound.value(), config.sync.bind, towards.value());
}

void warn_of_networks(const Config& config, Logger& log) {
  if (const auto plain = plain_brokers(config.source.kafka_properties); !plain.empty())
    log.write(
        Level::warn,
        "rows and passwords are sent to these brokers unencrypted: security.protocol is not ssl or sasl_ssl",
        {{"brokers", plain}});
  if (const auto why = unreachable_for_peers(config); !why.empty()) log.write(Level::warn, why);
}

}  // namespace rivulet::runtime
