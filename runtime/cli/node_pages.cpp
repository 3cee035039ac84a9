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

/// An address to listen on for everybody is reached here on loopback.
std::string reached_at(const std::string& host) {
  if (host == "0.0.0.0" || host == "[::]" || host.empty()) return "127.0.0.1";
  return host;
}

std::string rows(NodeReport::Whole value) {
  return grouped(static_cast<std::uint64_t>(std::max<std::int64_t>(value.value_or(0), 0)));
}

std::string seconds(NodeReport::Number value) {
  return human_seconds(value.value_or(0));
}

std::string share(NodeReport::Number value) {
  return value ? fmt::format("{:.1f} %", 100 * *value) : "not measured";
}

std::string loss_of(const NodeReport& r) {
  return r.loss ? fmt::format("{:.4f}", *r.loss) : "-";
}

/// A regression has no accuracy, and who trained nothing yet has not measured one.
std::string learning(const NodeReport& r) {
  std::string out = "  learning  loss " + loss_of(r);
  if (r.accuracy || r.held_out_accuracy)
    out += fmt::format(", accuracy (prequential) {}, held out {}", share(r.accuracy),
                       share(r.held_out_accuracy));
  return out;
}

std::string transferred(NodeReport::Whole value) {
  return human_bytes(static_cast<double>(value.value_or(0)));
}

std::string refusals(const NodeReport& r) {
  std::string out;
  for (const auto& [reason, refused] : r.refused)
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", grouped(refused), reason);
  return out;
}

/// "training, 4 devices in view 3; the others wait for c", or what else it does.
std::string state_of(const NodeReport& r) {
  const auto world = r.world.value_or(0);
  if (!r.phrase.empty() || !r.source_trouble.empty() || world == 0) return state_and_phrase(r);
  return fmt::format("{}, {} device{} in view {}{}", trains(r) ? "training" : r.state, world,
                     world == 1 ? "" : "s", r.view.value_or(0),
                     r.ready_last.empty() ? "" : "; the others wait for " + r.ready_last);
}

void add_own(const NodeReport& r, std::vector<std::string>& lines) {
  lines.push_back(fmt::format("{} (job {}, model {}): {}", r.id, r.job, r.model, state_of(r)));
  lines.push_back(fmt::format("  stream    {:.1f} rows/s arrive, {} rows wait, {} records behind",
                              r.stream_rate.value_or(0), rows(r.rows_waiting),
                              r.lag_records ? rows(r.lag_records) : "unknown"));
  lines.push_back(fmt::format("  trained   {} rows here, {} by the group, {} rounds applied, batch {}",
                              rows(r.rows_trained), rows(r.group_rows), rows(r.steps),
                              r.batch_rows.value_or(0)));
  lines.push_back(learning(r));
  lines.push_back(
      fmt::format("  time      {} computing, {} waiting for rows, {} waiting for peers and exchanging",
                  seconds(r.compute_s), seconds(r.wait_s), seconds(r.sync_s)));
  lines.push_back(fmt::format("  peers     {} sent, {} received; the records trained on have {}",
                              transferred(r.bytes_sent), transferred(r.bytes_received),
                              transferred(r.record_bytes_trained)));
  if (const auto words = agreement_of(r); !words.empty())
    lines.push_back(fmt::format(
        "  agreeing  {}{}", words,
        edge_ratio(r)
            ? fmt::format("; so far {:.3g} times the bytes of its records were sent", *edge_ratio(r))
            : ""));
  if (!r.refused.empty()) lines.push_back("  refused   " + refusals(r));
  for (const auto& p : r.partitions)
    if (p.state == "stopped" || !p.reason.empty())
      lines.push_back(fmt::format("  {:<9} {} partition {}: {}",
                                  p.state == "stopped" ? "STOPPED" : "held back", p.topic,
                                  p.partition.value_or(0), p.reason));
}

void add_unclaimed(const NodeReport& r, std::vector<std::string>& lines) {
  for (const auto& name : r.unclaimed)
    lines.push_back("  UNREAD    " + name + ": the group has trained it, and no device claims it");
}

void add_members(const NodeReport& r, std::vector<std::string>& lines) {
  if (r.members.empty()) return;
  lines.push_back(fmt::format("  {:<16} {:>8} {:>8} {:>6} {:>7} {:>9} {:>9} {:>9}", "device", "rows/s",
                              "waiting", "batch", "weight", "for rows", "computing", "for last"));
  for (const auto& m : r.members)
    lines.push_back(fmt::format("  {:<16} {:>8.1f} {:>8} {:>6} {:>6.1f}% {:>9} {:>9} {:>9}{}", m.id,
                                m.rows_per_s.value_or(0), rows(m.rows_waiting), m.rows.value_or(0),
                                100 * m.weight.value_or(0), seconds(m.wait_s), seconds(m.compute_s),
                                seconds(m.ready_before_last_s), m.id == r.ready_last ? "  <- last" : ""));
}

/// A page, or the answer of another program on that port.
Result<std::string> page(const NodePages& pages, const std::string& path) {
  auto answer = pages.ask(path);
  if (!answer) return answer.error();
  if (answer.value().status == 200) return std::move(answer.value().body);
  return pages.refusal(path, answer.value());
}

}  // namespace

void NodePages::add_to(CLI::App& app) {
  app.add_option(
         "ADDRESS", said_,
         "of the device's pages (default: http.listen of RIVULET_CONFIG and RIVULET_HTTP, or 127.0.0.1:9464)")
      ->type_name("HOST:PORT")
      ->check(not_empty);
  app.add_option("--token-file", token_file_, "the device's http.token_file, if it has one")
      ->type_name("FILE")
      ->check(not_empty);
}

Status NodePages::resolve(const Terminal& terminal) {
  std::vector<Secret> secrets;
  if (said_.empty()) {  // the device's own: whatever else is wrong there
    const ConfigFlags flags;
    auto loaded = load_config(flags.input(terminal));
    secrets = std::move(loaded.secrets);
    said_ = loaded.config.http.listen;
    if (token_file_.empty()) token_file_ = loaded.config.http.token_file;
  }
  const auto address = parse_address(said_);
  if (!address) return address.error();
  host_ = reached_at(address.value().first);
  port_ = address.value().second;
  if (token_file_.empty()) return ok();
  auto access = Access::from_file(token_file_);
  if (!access) return Error{access.error().code, masked(access.error().message, secrets)};
  access_ = std::move(access).value();
  return ok();
}

Result<HttpAnswer> NodePages::ask(const std::string& path) const {
  return http_ask(host_, port_, path, access_.header());
}

Error NodePages::refusal(const std::string& path, const HttpAnswer& answer) const {
  std::string_view said = answer.body;
  while (said.ends_with('\n')) said.remove_suffix(1);
  return {ErrorCode::unavailable,
          fmt::format("http://{}{} answers {}: {}", address(), path, answer.status, printable(said))};
}

Result<NodeAnswer> ask_all(const NodePages& pages) {
  auto status = page(pages, "/api/v1/status");
  if (!status) return status.error();
  auto group = page(pages, "/api/v1/group");
  if (!group) return group.error();
  auto report = read_node_report(status.value(), group.value());
  if (!report)
    return Error{ErrorCode::unavailable, pages.address() + " answers, but not as a Rivulet device does"};
  return NodeAnswer{std::move(status).value(), std::move(group).value(), std::move(*report)};
}

std::vector<std::string> render_report(const NodeReport& report, int width) {
  std::vector<std::string> lines;
  add_own(report, lines);
  add_unclaimed(report, lines);
  add_members(report, lines);
  for (const auto& sentence : report.said) lines.push_back("  " + sentence);
  // The whole line: an id, a phrase, a reason, a sentence may hold any bytes, also those that move a cursor.
  for (auto& line : lines) line = clipped(printable(line), width);
  return lines;
}

std::string render_report_line(const NodeReport& r) {
  return printable(fmt::format(
      "{}: {}  | {:.1f} rows/s, waiting {}, batch {}, trained {}, loss {}, rounds {}, refused {}", r.id,
      state_of(r), r.stream_rate.value_or(0), r.rows_waiting.value_or(0), r.batch_rows.value_or(0),
      r.rows_trained.value_or(0), loss_of(r), r.steps.value_or(0), refused_rows(r)));
}

}  // namespace rivulet::runtime::cli
