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

bool is_here(const std::string& host) {
  return host == "localhost" || host.starts_with("127.") || host == "[::1]" || host == "::1";
}

std::string trimmed(std::string text) {
  text.erase(0, text.find_first_not_of(' '));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

}  // namespace

std::string plain_brokers(const std::vector<std::pair<std::string, std::string>>& properties) {
  std::string servers;
  std::string protocol = "plaintext";
  for (const auto& [name, value] : properties) {
    if (name == "bootstrap.servers" || name == "metadata.broker.list") servers = value;
    if (name == "security.protocol") protocol = value;
  }
  std::ranges::transform(protocol, protocol.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (protocol.ends_with("ssl")) return "";
  std::string found;
  while (!servers.empty()) {
    const auto comma = std::min(servers.find(','), servers.size());
    const std::string server = trimmed(servers.substr(0, comma));
    servers.erase(0, comma + 1);
    if (!server.empty() && !is_here(host_of(server))) found += (found.empty() ? "" : ", ") + server;
  }
  return found;
}

}  // namespace rivulet::runtime
