#pragma once
#include <string>
#include <utility>
#include <vector>

namespace rivulet::runtime {

/// localhost, or a loopback address.
bool is_this_machine(const std::string& host);

/// The hosts of bootstrap.servers, without their ports. Pure.
std::vector<std::string> broker_hosts(const std::vector<std::pair<std::string, std::string>>& properties);

/// Of bootstrap.servers those that are not of this machine, if `properties` (of librdkafka) reach them
/// without encryption: anyone on the path reads rows and, with SASL, can take over the session. Names
/// joined by ", "; empty if there is nothing to warn of. Pure.
std::string plain_brokers(const std::vector<std::pair<std::string, std::string>>& properties);

}  // namespace rivulet::runtime
