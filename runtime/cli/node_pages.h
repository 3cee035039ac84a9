#pragma once
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/cli/command.h"
#include "runtime/status/http/access.h"
#include "runtime/status/http/http_server.h"
#include "runtime/status/page/node_report.h"

namespace rivulet::runtime::cli {

/// A running device, as a command asks it: ADDRESS and --token-file, or else the device's own file
/// and variables, so that a command in its container needs neither.
class NodePages {
 public:
  void add_to(CLI::App& app);
  /// Before the first get(). Errors: usage (not HOST:PORT), invalid_config (the token's file).
  Status resolve(const Terminal& terminal);
  /// "127.0.0.1:9464".
  [[nodiscard]] std::string address() const { return host_ + ":" + std::to_string(port_); }
  /// `stop`: as http_ask() has it. Errors: unavailable (nobody answers; names the address).
  [[nodiscard]] Result<HttpAnswer> ask(const std::string& path, const StopRequest* stop = nullptr) const;
  /// The error when `answer` is not the page; unavailable, and fit for a terminal.
  [[nodiscard]] Error refusal(const std::string& path, const HttpAnswer& answer) const;

 private:
  std::string said_;
  std::string token_file_;
  std::string host_;
  int port_ = 0;
  Access access_;
};

/// What a device answered to /api/v1/status and /api/v1/group.
struct NodeAnswer {
  std::string status;  ///< the pages, whole
  std::string group;
  NodeReport report;  ///< what is in them
};
/// `stop`: as http_ask() has it. Errors: unavailable (also if an answer is not a page: its text, fit for a
/// terminal).
Result<NodeAnswer> ask_all(const NodePages& pages, const StopRequest* stop = nullptr);

}  // namespace rivulet::runtime::cli
