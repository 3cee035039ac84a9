#include "runtime/cli/node_pages.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/printable.h"
#include "runtime/cli/config_flags.h"
#include "runtime/cli/text.h"
#include "runtime/config/secrets.h"

namespace rivulet::runtime::cli {
namespace {

/// A wildcard listen address is reached via loopback.
std::string reached_at(const std::string& host) {
  if (host == "0.0.0.0" || host == "[::]" || host.empty()) return "127.0.0.1";
  return host;
}

/// Returns a page. Another program may answer on that port.
Result<std::string> page(const NodePages& pages, const std::string& path, const StopRequest* stop) {
  auto answer = pages.fetch(path, stop);
  if (!answer) return answer.error();
  if (answer.value().status == 200) return std::move(answer.value().body);
  return pages.refusal(path, answer.value());
}

}  // namespace

void NodePages::add_to(CLI::App& app) {
  app.add_option("ADDRESS", answers_,
                 "HTTP address of the device (default: http.listen from RIVULET_CONFIG or RIVULET_HTTP, "
                 "or 127.0.0.1:9464)")
      ->type_name("HOST:PORT")
      ->check(not_empty);
  app.add_option("--token-file", token_file_,
                 "file with the device's token (http.token_file), if it requires one")
      ->type_name("FILE")
      ->check(not_empty);
}

Status NodePages::resolve(const Terminal& terminal) {
  std::vector<Secret> secrets;
  if (answers_.empty()) {  // from the device's configuration; other errors in it do not matter
    const ConfigFlags flags;
    auto loaded = load_config(flags.input(terminal));
    secrets = std::move(loaded.secrets);
    answers_ = loaded.config.http.listen;
    if (token_file_.empty()) token_file_ = loaded.config.http.token_file;
  }
  const auto address = parse_address(answers_);
  if (!address) return address.error();
  host_ = reached_at(address.value().first);
  port_ = address.value().second;
  if (token_file_.empty()) return ok();
  auto access = Access::from_file(token_file_);
  if (!access) return Error{access.error().code, masked(access.error().message, secrets)};
  access_ = std::move(access).value();
  return ok();
}

Result<HttpAnswer> NodePages::fetch(const std::string& path, const StopRequest* stop) const {
  return http_request(host_, port_, path, access_.header(), stop);
}

Error NodePages::refusal(const std::string& path, const HttpAnswer& answer) const {
  std::string_view said = answer.body;
  while (said.ends_with('\n')) said.remove_suffix(1);
  return {ErrorCode::unavailable,
          fmt::format("http://{}{} answers {}: {}", address(), path, answer.status, printable(said))};
}

Result<NodeAnswer> fetch_all(const NodePages& pages, const StopRequest* stop) {
  auto status = page(pages, "/api/v1/status", stop);
  if (!status) return status.error();
  auto group = page(pages, "/api/v1/group", stop);
  if (!group) return group.error();
  auto report = read_node_report(status.value(), group.value());
  if (!report)
    return Error{ErrorCode::unavailable, pages.address() + " answers, but is not a Rivulet device"};
  return NodeAnswer{std::move(status).value(), std::move(group).value(), std::move(*report)};
}

}  // namespace rivulet::runtime::cli
