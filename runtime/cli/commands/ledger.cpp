#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/cli/command.h"
#include "runtime/cli/config_flags.h"
#include "runtime/cli/evaluation.h"
#include "runtime/cli/ledger.h"
#include "runtime/cli/round_rows.h"

namespace rivulet::runtime::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* ledger_footer = R"(Examples:
  rivulet ledger show --config device.toml                  fate of all rows, per partition
  rivulet ledger verify --config device.toml                exit code 1 unless every offset is accounted for
  rivulet ledger show --config device.toml --topic mnist --rows     which rows were trained in which round
  rivulet ledger verify --config device.toml --offline      without the broker's log ends

Shows the ledger in the newest checkpoint of --data-dir, with all partitions of the job. For each,
  next - start = trained + dropped - shared + holes, and the log ends `waiting` offsets after next
Ranges and rounds exclude their end position. `shared` counts rows that are not the last of their record;
`holes` are offsets without a row.)";

std::string place(const RowCursor& at) {
  return at.row == 0 ? std::to_string(at.offset) : fmt::format("{}.{}", at.offset, at.row);
}

std::string fate_of(const SkippedRange& run) {
  return run.fate == fate_hole ? "hole"
                               : "dropped: " + std::string(name_of(static_cast<DropReason>(run.fate)));
}

Json dropped_json(const PartitionProgress& p) {
  auto out = Json::object();
  for (std::size_t i = 0; i < drop_reasons; ++i)
    if (p.dropped.at(i) > 0) out[std::string(name_of(static_cast<DropReason>(i)))] = p.dropped.at(i);
  return out;
}

std::string dropped_text(const PartitionProgress& p) {
  std::string text;
  const Json dropped = dropped_json(p);
  for (const auto& [reason, rows] : dropped.items())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", rows.get<std::uint64_t>(), reason);
  return text.empty() ? "" : " (" + text + ")";
}

Json cursor_json(const RowCursor& at) {
  return Json::array({at.offset, at.row});
}

Json line_json(const PartitionLedger& line) {
  const auto& p = line.entries;
  Json out{{"topic", line.topic},           {"partition", line.id.partition},
           {"start", cursor_json(p.start)}, {"next", cursor_json(p.next)},
           {"rows_trained", p.trained},     {"rows_dropped", dropped_json(p)},
           {"rows_shared", p.shared},       {"holes", p.holes}};
  if (line.ends) {
    out["low_watermark"] = line.ends->low;
    out["high_watermark"] = line.ends->high;
    out["waiting"] = line.waiting();
  }
  const std::string trouble = line.trouble();
  out["balanced"] = trouble.empty();
  if (!trouble.empty()) out["trouble"] = trouble;
  return out;
}

std::string line_text(const PartitionLedger& line) {
  const auto& p = line.entries;
  std::string text =
      fmt::format("{}:{}  offsets {} to {}: {} trained, {} dropped{}", line.topic, line.id.partition,
                  place(p.start), place(p.next), p.trained, p.all_dropped(), dropped_text(p));
  if (p.shared > 0) text += fmt::format(", {} shared", p.shared);
  text += fmt::format(", {} holes", p.holes);
  if (line.ends) text += fmt::format("; {} waiting", line.waiting());
  const std::string trouble = line.trouble();
  return text + (trouble.empty() ? "  balanced\n" : "  NOT BALANCED: " + trouble + "\n");
}

class LedgerCommand final : public Command {
 public:
  explicit LedgerCommand(CLI::App& root)
      : app_(root.add_subcommand("ledger", "account for every row: show, verify")),
        show_(app_->add_subcommand("show", "show the ledger of every partition")),
        verify_(
            app_->add_subcommand("verify", "check that every offset is accounted for and within the log")) {
    app_->require_subcommand(1);
    app_->footer(ledger_footer);
    show_->footer(ledger_footer);
    verify_->footer(ledger_footer);
    show_flags_.add_to(*show_, {"--brokers", "--data-dir"});
    verify_flags_.add_to(*verify_, {"--brokers", "--data-dir"});
    for (CLI::App* sub : {show_, verify_}) {
      sub->add_option("--topic", topic_, "only partitions of this topic")->type_name("TOPIC");
      sub->add_option("--state", state_, "checkpoint to read instead of the newest")->type_name("FILE");
      sub->add_flag("--rows", rows_, "also list the rows of each round and the skipped ranges");
      sub->add_flag("--offline", offline_, "do not contact the broker");
      sub->add_flag("--json", json_, "one JSON object");
    }
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    ConfigFlags& flags = show_->parsed() ? show_flags_ : verify_flags_;
    if (offline_) flags.without_stream();
    const auto loaded = load_or_report(flags, terminal);
    if (!loaded) return ExitCode::configuration;
    const auto state = newest(*loaded, terminal);
    if (!state) return ExitCode::failure;
    auto lines = ledger_of(*state, loaded->config.source.topics, topic_);
    if (lines.empty()) {  // an empty ledger would pass every check
      terminal.err << fmt::format("error: the ledger contains no partition{}\n",
                                  topic_.empty() ? "" : " of topic \"" + topic_ + "\"");
      return ExitCode::failure;
    }
    if (!offline_)
      if (auto asked = query_broker(loaded->config.source.kafka_properties, lines); !asked)
        return report_error(terminal, asked.error());
    const auto rounds = rows_ ? rounds_in(loaded->config.device.data_dir, state->stamp.step)
                              : Result<std::vector<RoundRows>>(std::vector<RoundRows>{});
    if (!rounds) return report_error(terminal, rounds.error());
    if (json_)
      print_json(*state, lines, rounds.value(), terminal);
    else
      print_text(*state, lines, rounds.value(), terminal);
    const bool balanced =
        std::ranges::all_of(lines, [](const PartitionLedger& l) { return l.trouble().empty(); });
    return show_->parsed() || balanced ? ExitCode::ok : ExitCode::failure;
  }

 private:
  std::optional<StateFacts> newest(const LoadedConfig& loaded, Terminal& terminal) const {
    std::vector<std::string> problems;
    std::vector<std::string> files;
    if (!state_.empty())
      files.push_back(state_);
    else
      for (const auto& e : CheckpointFolder(checkpoints_in(loaded.config.device.data_dir)).list(problems))
        files.push_back(e.path);
    for (const auto& file : files) {
      auto facts = inspect_state_file(loaded, file);
      if (facts) return std::move(facts).value();
      problems.push_back(facts.error().message);
    }
    for (const auto& problem : problems) terminal.err << "error: " << problem << '\n';
    if (problems.empty())
      terminal.err << "error: no checkpoint in " << checkpoints_in(loaded.config.device.data_dir)
                   << " (checkpoint.every sets the interval)\n";
    return std::nullopt;
  }

  void print_text(const StateFacts& state, const std::vector<PartitionLedger>& lines,
                  const std::vector<RoundRows>& rounds, Terminal& terminal) const {
    terminal.out << fmt::format("step {} (view {}), {} rows trained by the group, digest {}\n",
                                state.stamp.step, state.stamp.lineage, state.rows, state.digest.hex());
    for (const PartitionLedger& line : lines) {
      terminal.out << line_text(line);
      if (!rows_) continue;
      for (const auto& [view, step, rows] : rounds)
        if (rows.partition == line.id)
          terminal.out << fmt::format("  {} to {}: step {} (view {}), {} trained, {} dropped\n",
                                      place(rows.first), place(rows.next), step, view, rows.rows_trained,
                                      rows.rows_dropped);
      for (const auto& [from, to] : without_round(line.id, line.entries, rounds))
        terminal.out << fmt::format("  {} to {}: in rounds missing from this device's decision logs\n",
                                    place(from), place(to));
      for (const SkippedRange& run : line.entries.runs)
        terminal.out << fmt::format("  {} to {}: {} {}\n", place(run.from), place(run.to), run.rows,
                                    fate_of(run));
    }
  }

  void print_json(const StateFacts& state, const std::vector<PartitionLedger>& lines,
                  const std::vector<RoundRows>& rounds, Terminal& terminal) const {
    auto partitions = Json::array();
    for (const PartitionLedger& line : lines) {
      partitions.push_back(line_json(line));
      if (!rows_) continue;
      auto used = Json::array();
      for (const auto& [view, step, rows] : rounds)
        if (rows.partition == line.id)
          used.push_back({{"first", cursor_json(rows.first)},
                          {"next", cursor_json(rows.next)},
                          {"step", step},
                          {"view", view},
                          {"trained", rows.rows_trained},
                          {"dropped", rows.rows_dropped}});
      auto passed = Json::array();
      for (const SkippedRange& run : line.entries.runs)
        passed.push_back({{"from", cursor_json(run.from)},
                          {"to", cursor_json(run.to)},
                          {"rows", run.rows},
                          {"fate", fate_of(run)}});
      auto unknown = Json::array();
      for (const auto& [from, to] : without_round(line.id, line.entries, rounds))
        unknown.push_back({{"first", cursor_json(from)}, {"next", cursor_json(to)}});
      partitions.back()["rounds"] = used;
      partitions.back()["rounds_unknown"] = unknown;
      partitions.back()["passed"] = passed;
    }
    terminal.out << Json{{"lineage", state.stamp.lineage},
                         {"step", state.stamp.step},
                         {"rows", state.rows},
                         {"digest", state.digest.hex()},
                         {"partitions", partitions}}
                        .dump()
                 << '\n';
  }

  CLI::App* app_;
  CLI::App* show_;
  CLI::App* verify_;
  ConfigFlags show_flags_;
  ConfigFlags verify_flags_;
  std::string topic_;
  std::string state_;
  bool rows_ = false;
  bool offline_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_ledger_command(CLI::App& root) {
  return std::make_unique<LedgerCommand>(root);
}

}  // namespace rivulet::runtime::cli
