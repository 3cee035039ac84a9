#include "runtime/node/peer_address.h"

#include <fmt/format.h>

#include "runtime/node/plain_brokers.h"

namespace rivulet::runtime {
namespace {

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace

sync::GlooConfig gloo_config(const Config& config) {
  sync::GlooConfig gloo;
  gloo.transport.progress_deadline = config.sync.deadline;
  gloo.bind = config.sync.bind;
  gloo.towards = broker_hosts(config.source.kafka_properties);
  gloo.advertise = config.sync.advertise;
  gloo.port = config.sync.port;
  return gloo;
}

std::string unreachable_for_peers(const Config& config) {
  if (config.job.devices == 1 || !config.sync.advertise.empty()) return {};
  sync::GlooConfig gloo = gloo_config(config);
  const auto bound = sync::local_peer_address(gloo);
  if (!bound || !is_loopback(bound.value())) return {};
  gloo.bind = "auto";
  const auto towards = sync::local_peer_address(gloo);
  if (!towards || is_loopback(towards.value())) return {};
  return fmt::format(
      "peers on other machines cannot reach {} (sync.bind = \"{}\"); the brokers are reached from {}",
      bound.value(), config.sync.bind, towards.value());
}

void warn_of_networks(const Config& config, Logger& log) {
  if (const auto plain = plain_brokers(config.source.kafka_properties); !plain.empty())
    log.write(Level::warn,
              "rows and passwords go to these brokers unencrypted: security.protocol is not ssl or sasl_ssl",
              {{"brokers", plain}});
  if (const auto why = unreachable_for_peers(config); !why.empty()) log.write(Level::warn, why);
}

}  // namespace rivulet::runtime
