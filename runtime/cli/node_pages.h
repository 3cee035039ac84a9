#pragma once
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/cli/command.h"
#include "runtime/status/http/access.h"
#include "runtime/status/http/http_server.h"
#include "runtime/status/page/node_report.h"

namespace rivulet::runtime::cli {

/// Access of a command to a running device: ADDRESS and --token-file, or by default the device's own
/// configuration file and variables, so that a command in its container needs no arguments.
class NodePages {
 public:
  void add_to(CLI::App& app);
  /// Call before fetch(). Errors: usage (not HOST:PORT), invalid_config (the token file).
  Status resolve(const Terminal& terminal);
  /// "127.0.0.1:9464".
  [[nodiscard]] std::string address() const { return host_ + ":" + std::to_string(port_); }
  /// `stop`: see http_request(). Errors: unavailable (no answer; names the address).
  [[nodiscard]] Result<HttpAnswer> fetch(const std::string& path, const StopRequest* stop = nullptr) const;
  /// Returns the error for an `answer` other than the page: code unavailable, with a message that is safe to
  /// print.
  [[nodiscard]] Error refusal(const std::string& path, const HttpAnswer& answer) const;

 private:
  std::string answers_;
  std::string token_file_;
  std::string host_;
  int port_ = 0;
  Access access_;
};

/// A device's answers to /api/v1/status and /api/v1/group.
struct NodeAnswer {
  std::string status;  ///< whole pages
  std::string group;
  NodeReport report;  ///< their parsed content
};
/// `stop`: see http_request(). Errors: unavailable (also for an answer that is not a page: the message quotes
/// it, escaped).
Result<NodeAnswer> fetch_all(const NodePages& pages, const StopRequest* stop = nullptr);

}  // namespace rivulet::runtime::cli
