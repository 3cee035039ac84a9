#include "runtime/node/plain_brokers.h"

#include <algorithm>
#include <cctype>

namespace rivulet::runtime {
namespace {

std::string host_of(std::string server) {
  if (const auto scheme = server.find("://"); scheme != std::string::npos) server.erase(0, scheme + 3);
  if (const auto colon = server.rfind(':');
      colon != std::string::npos && server.find(']', colon) == std::string::npos)
    server.resize(colon);
  return server;
}

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

std::vector<std::string> servers_in(const std::vector<std::pair<std::string, std::string>>& properties) {
  std::string servers;
  for (const auto& [name, value] : properties)
    if (name == "bootstrap.servers" || name == "metadata.broker.list") servers = value;
  std::vector<std::string> found;
  while (!servers.empty()) {
    const auto comma = std::min(servers.find(','), servers.size());
    if (auto server = trimmed(servers.substr(0, comma)); !server.empty()) found.push_back(std::move(server));
    servers.erase(0, comma + 1);
  }
  return found;
}

}  // namespace

bool is_this_machine(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "[::1]" || host == "::1";
}

std::vector<std::string> broker_hosts(const std::vector<std::pair<std::string, std::string>>& properties) {
  std::vector<std::string> hosts = servers_in(properties);
  for (std::string& host : hosts) {
    host = host_of(std::move(host));
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  }
  return hosts;
}

std::string plain_brokers(const std::vector<std::pair<std::string, std::string>>& properties) {
  std::string protocol = "plaintext";
  for (const auto& [name, value] : properties)
    if (name == "security.protocol") protocol = value;
  std::ranges::transform(protocol, protocol.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (protocol.ends_with("ssl")) return "";
  std::string found;
  for (const std::string& server : servers_in(properties))
    if (!is_this_machine(host_of(server))) found += (found.empty() ? "" : ", ") + server;
  return found;
}

}  // namespace rivulet::runtime
