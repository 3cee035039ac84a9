#pragma once
#include <string>
#include <utility>
#include <vector>

namespace rivulet::runtime {

/// Whether `host` is localhost or a loopback address.
bool is_this_machine(const std::string& host);

/// Returns the hosts of bootstrap.servers, without their ports. Pure.
std::vector<std::string> broker_hosts(const std::vector<std::pair<std::string, std::string>>& properties);

/// Returns the remote hosts of bootstrap.servers that `properties` (of librdkafka) reach without encryption:
/// anyone on the path can read rows and, with SASL, take over the session. Joined by ", "; empty if there are
/// none. Pure.
std::string plain_brokers(const std::vector<std::pair<std::string, std::string>>& properties);

}  // namespace rivulet::runtime
