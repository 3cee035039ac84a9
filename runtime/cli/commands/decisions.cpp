#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <deque>
#include <nlohmann/json.hpp>
#include <ostream>

#include "runtime/cli/command.h"
#include "runtime/cli/text.h"
#include "runtime/decisions/decision_files.h"
#include "runtime/decisions/decision_reader.h"
#include "runtime/decisions/gain_thresholds.h"
#include "runtime/decisions/plan_replay.h"
#include "runtime/decisions/round_explanation.h"
#include "runtime/node/catalog.h"
#include "runtime/status/group_json.h"

namespace rivulet::runtime::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* decisions_footer = R"(Examples:
  rivulet decisions replay data/decisions.jsonl             recompute every plan from its recorded facts
  rivulet decisions explain data/decisions.jsonl            explain the last rounds
  rivulet decisions explain data/decisions.jsonl --view 3 --round 120 --json
  rivulet decisions gains data/decisions.jsonl --open 0.5   thresholds for a gate that is open in half of the rounds

A device writes every round to decisions.jsonl in its data directory: the facts of all devices and the plan
computed from them. Full files are renamed to decisions.jsonl.1, .2, ...; all existing files are read,
oldest first. log.decisions and log.decisions_max set how much is written and kept.
`replay` exits with 0 only if every plan is reproduced bit for bit.)";

std::string whole_number(const std::string& text) {
  std::uint64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [read, error] = std::from_chars(text.data(), end, value);
  return error == std::errc{} && read == end ? "" : "'" + text + "' is not a whole number";
}

/// Explains up to the newest `last` rounds, or the newest matching one, in one pass. Keeps only the rounds to
/// show in memory.
class StoryPrinter {
 public:
  StoryPrinter(std::size_t last, std::optional<std::uint64_t> view, std::optional<std::uint64_t> round)
      : last_(last), view_wanted_(view), round_wanted_(round) {}
  void take(const ViewRecord& view, const RoundRecord& round) {
    if (now_ && now_->view == round.view && now_->round + 1 == round.round) {
      print(&round);
      before_ = std::move(now_);
    } else {
      print(nullptr);
      before_.reset();
    }
    of_ = view;
    now_ = round;
  }
  std::deque<RoundExplanation> finish() {
    print(nullptr);
    return std::move(stories_);
  }

 private:
  void print(const RoundRecord* after) {
    if (!now_ || (view_wanted_ && *view_wanted_ != now_->view)) return;
    if (round_wanted_ && *round_wanted_ != now_->round) return;
    stories_.push_back(explain_round(*of_, before_ ? &*before_ : nullptr, *now_, after));
    if (stories_.size() > last_) stories_.pop_front();
  }

  const std::size_t last_;
  const std::optional<std::uint64_t> view_wanted_;
  const std::optional<std::uint64_t> round_wanted_;
  std::optional<ViewRecord> of_;
  std::optional<RoundRecord> before_;
  std::optional<RoundRecord> now_;
  std::deque<RoundExplanation> stories_;
};

void print_story(const RoundExplanation& s, std::ostream& out) {
  out << fmt::format("Round {} of view {}, step {}: {} ({}: {})\n", s.round, s.view, s.step, s.mode, s.policy,
                     s.why);
  std::size_t width = 0;
  for (const auto& d : s.devices) width = std::max(width, d.id.size());
  for (const auto& d : s.devices)
    out << fmt::format("  {:{}}  {:>6} rows, weight {:>4.1f} %; {:>8.1f} rows/s, {} more waiting\n", d.id,
                       width, d.rows, 100 * d.weight, d.rows_per_s, d.waiting_rows);
  for (const auto& sentence : s.sentences) out << "  " << sentence << '\n';
}

class DecisionsCommand final : public Command {
 public:
  explicit DecisionsCommand(CLI::App& root)
      : app_(root.add_subcommand("decisions",
                                 "explain rounds and verify their plans: replay, explain, gains")),
        replay_(app_->add_subcommand("replay", "recompute every plan from its recorded facts, bit for bit")),
        explain_(app_->add_subcommand("explain", "explain rounds in words")),
        gains_(app_->add_subcommand("gains",
                                    "thresholds for compression gates, from the gains of recorded rounds")) {
    app_->require_subcommand(1);
    app_->footer(decisions_footer);
    for (CLI::App* sub : {replay_, explain_, gains_}) {
      sub->footer(decisions_footer);
      sub->add_option("LOG", log_, "decisions.jsonl of a device")->required()->type_name("FILE");
      sub->add_flag("--json", json_, sub == explain_ ? "one JSON object per round" : "one JSON object");
    }
    gains_->add_option("--open", open_, "target share of rounds with an open gate")
        ->type_name("SHARE")
        ->check(CLI::Range(0.001, 1.0))
        ->capture_default_str();
    auto* round =
        explain_->add_option("--round", round_, "only this round, in the newest view that contains it")
            ->type_name("R")
            ->check(whole_number);
    explain_->add_option("--view", view_, "only rounds of this view")->type_name("V")->check(whole_number);
    explain_->add_option("--last", last_, "number of newest rounds to explain")
        ->type_name("N")
        ->check(CLI::Range(1, 10'000))
        ->capture_default_str()
        ->excludes(round);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }
  ExitCode execute(Terminal& terminal) override {
    if (gains_->parsed()) return gains(terminal);
    return replay_->parsed() ? replay(terminal) : explain(terminal);
  }

 private:
  ExitCode replay(Terminal& terminal) const {
    const auto report = replay_plans(log_, builtin_catalog().sync.controllers);
    if (!report) return report_error(terminal, report.error());
    const auto& r = report.value();
    if (json_) {
      print_json(r, terminal);
    } else {
      for (const auto& note : r.notes) terminal.out << note << '\n';
      if (r.difference)
        terminal.out << fmt::format("{}: view {}, round {}: {} is recorded as {}, but recomputed as {}\n",
                                    r.difference->place, r.difference->view, r.difference->round,
                                    r.difference->what.field, r.difference->what.recorded,
                                    r.difference->what.computed);
      terminal.out << fmt::format("{} rounds of {} views recomputed from their facts: {}\n",
                                  grouped(r.rounds), grouped(r.views), verdict(r));
    }
    return r.proven() ? ExitCode::ok : ExitCode::failure;
  }
  static std::string verdict(const PlanReplayReport& r) {
    if (r.difference) return "DIFFERENT from the recorded plans";
    if (r.rounds == 0)
      return r.views > 0 ? "no round is recorded (log.decisions = \"views\")" : "nothing to check";
    return r.unchecked > 0 ? "the remaining rounds are unverified"
                           : "every plan equals the recorded one, bit for bit";
  }
  static void print_json(const PlanReplayReport& r, Terminal& terminal) {
    Json out{{"views", r.views},    {"rounds", r.rounds}, {"unchecked", r.unchecked},
             {"equal", r.proven()}, {"notes", r.notes},   {"difference", nullptr}};
    if (r.difference)
      out["difference"] = {{"place", r.difference->place},
                           {"view", r.difference->view},
                           {"round", r.difference->round},
                           {"field", r.difference->what.field},
                           {"recorded", r.difference->what.recorded},
                           {"computed", r.difference->what.computed}};
    terminal.out << out.dump() << '\n';
  }

  ExitCode gains(Terminal& terminal) const {
    const auto found = gain_thresholds(log_, open_, builtin_catalog().sync.controllers);
    if (!found) return report_error(terminal, found.error());
    if (json_) {
      Json out{{"rounds", found.value().rounds}, {"open", open_}, {"shares", Json::array()}};
      for (const GainThreshold& t : found.value().shares)
        out["shares"].push_back({{"keep", t.keep}, {"squared", t.squared}, {"unsquared", t.unsquared}});
      terminal.out << out.dump() << '\n';
      return ExitCode::ok;
    }
    terminal.out << fmt::format(
        "Of {} rounds, {:g} % reached these gains. Use a gain as epsilon of gravac or moo, and 1 - gain as "
        "delta of two-point.\n\n{:>10}  {:>10}  {:>10}\n",
        grouped(found.value().rounds), 100 * open_, "keep ratio", "squared", "unsquared");
    for (const GainThreshold& t : found.value().shares)
      terminal.out << fmt::format("{:>10g}  {:>10.4f}  {:>10.4f}\n", t.keep, t.squared, t.unsquared);
    return ExitCode::ok;
  }

  ExitCode explain(Terminal& terminal) const {
    auto stories = read_stories();
    if (!stories) return report_error(terminal, stories.error());
    if (stories.value().empty())
      return report_error(terminal,
                          round_ || view_
                              ? Error{ErrorCode::usage, log_ + " contains no such round" + what_is_missing()}
                              : Error{ErrorCode::bad_record, log_ + " contains no rounds"});
    for (const auto& story : stories.value()) {
      if (json_)
        terminal.out << explanation_json(story) << '\n';
      else
        print_story(story, terminal.out);
    }
    return ExitCode::ok;
  }
  [[nodiscard]] std::string what_is_missing() const {
    std::string text;
    for (const auto& sentence : missing_decision_files(log_, decision_files(log_))) text += "; " + sentence;
    return text;
  }
  /// Recomputes each plan before explaining it, so that explanations match the facts.
  [[nodiscard]] Result<std::deque<RoundExplanation>> read_stories() const {
    auto reader = DecisionReader::open(log_);
    if (!reader) return reader.error();
    PlanReplay plans(builtin_catalog().sync.controllers);
    StoryPrinter printer(round_ ? 1 : last_, view_, round_);
    while (true) {
      auto record = reader.value().next();
      if (!record) return record.error();
      if (!record.value()) return printer.finish();
      if (reader.value().behind_gap()) plans.skip();
      const auto differs = plans.take(*record.value());
      const std::string place = reader.value().place();
      if (!differs) return Error{ErrorCode::bad_record, place + ": " + differs.error().message};
      if (differs.value())
        return Error{ErrorCode::bad_record, place +
                                                ": the recorded plan differs from the plan computed from its "
                                                "facts (see rivulet decisions replay)"};
      const auto* round = std::get_if<RoundRecord>(&*record.value());
      if (round != nullptr && plans.view()) printer.take(*plans.view(), *round);
    }
  }

  CLI::App* app_;
  CLI::App* replay_;
  CLI::App* explain_;
  CLI::App* gains_;
  double open_ = 0.5;
  std::string log_;
  std::optional<std::uint64_t> round_;
  std::optional<std::uint64_t> view_;
  std::size_t last_ = 5;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_decisions_command(CLI::App& root) {
  return std::make_unique<DecisionsCommand>(root);
}

}  // namespace rivulet::runtime::cli
