#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <ostream>

#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/cli/command.h"
#include "runtime/cli/config_flags.h"
#include "runtime/cli/evaluation.h"
#include "runtime/process/topic_name.h"

namespace rivulet::runtime::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* checkpoint_footer = R"(Examples:
  rivulet checkpoint ls --config device.toml              files of this device, newest first, with time and score
  rivulet checkpoint verify --config device.toml          reads every byte; exit code 1 if a file is unusable
  rivulet checkpoint show --config device.toml FILE       progress of the group in every partition
  rivulet checkpoint prune --config device.toml --keep 1  deletes all except the newest; the device must be stopped
  rivulet checkpoint restore --config device.toml FILE    rolls back to this checkpoint; the device must be stopped
  rivulet checkpoint export --config device.toml DATA_DIR model.safetensors
                                                          the newest model as safetensors, with LibTorch's tensor names

Each checkpoint contains the state of the whole group. A group resumes from the newest state on any of its devices. To roll
back, stop all devices, restore on each, then start them. Newer files are kept in checkpoints/newer-N.)";

class CheckpointCommand final : public Command {
 public:
  explicit CheckpointCommand(CLI::App& root)
      : app_(root.add_subcommand("checkpoint", "saved states: ls, show, verify, prune, restore, export")),
        ls_(app_->add_subcommand("ls", "list the checkpoints of this device, newest first")),
        show_(app_->add_subcommand("show", "show one checkpoint: stamp, digest, partitions")),
        verify_(
            app_->add_subcommand("verify", "check every byte of FILE, or of all checkpoints of this device")),
        prune_(app_->add_subcommand("prune",
                                    "delete all except the newest usable ones; only for a stopped device")),
        restore_(app_->add_subcommand(
            "restore",
            "roll back to an older checkpoint and train later rows again; only for a stopped device")),
        export_(app_->add_subcommand("export", "export the model as a safetensors file")) {
    app_->require_subcommand(1);
    app_->footer(checkpoint_footer);
    for (const auto& [sub, flags] : subcommands()) {
      sub->add_flag("--json", json_, "one JSON object");
      flags->add_to(*sub);
      sub->footer(checkpoint_footer);
    }
    prune_->add_option("--keep", keep_, "number of checkpoints to keep (default: checkpoint.keep)")
        ->type_name("N")
        ->check(CLI::Range(1, 1000));
    export_
        ->add_option("from", from_,
                     "checkpoint to export, or a folder (exports its newest usable checkpoint)")
        ->type_name("FILE|DIR")
        ->required();
    export_->add_option("out", out_, "output file, .safetensors")->type_name("OUT")->required();
    export_->add_option("--optimizer", optimizer_out_, "additional output file for the optimizer's arrays")
        ->type_name("FILE");
    show_->add_option("file", files_, "checkpoint to show")->type_name("FILE")->required()->expected(1);
    verify_->add_option("file", files_, "checkpoints to verify (default: all of this device)")
        ->type_name("FILE");
    restore_->add_option("file", from_, "checkpoint of this device to roll back to (see ls)")
        ->type_name("FILE")
        ->required();
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    for (const auto& [sub, flags] : subcommands()) {
      if (!sub->parsed()) continue;
      flags->without_stream();
      const auto loaded = load_or_report(*flags, terminal);
      if (!loaded) return ExitCode::configuration;
      return execute(sub, *loaded, terminal);
    }
    return ExitCode::usage;
  }

 private:
  std::array<std::pair<CLI::App*, ConfigFlags*>, 6> subcommands() {
    return {{{ls_, &ls_flags_},
             {show_, &show_flags_},
             {verify_, &verify_flags_},
             {prune_, &prune_flags_},
             {restore_, &restore_flags_},
             {export_, &export_flags_}}};
  }

  ExitCode execute(const CLI::App* sub, const LoadedConfig& loaded, Terminal& terminal) const {
    if (sub == ls_) return list(loaded, terminal);
    if (sub == show_) return show(loaded, terminal);
    if (sub == verify_) return verify(loaded, terminal);
    if (sub == restore_) return restore(loaded, terminal);
    return sub == prune_ ? prune(loaded, terminal) : write_model(loaded, terminal);
  }

  static std::string time_text(std::int64_t ms) {
    if (ms <= 0) return "saved at ?";
    const std::time_t seconds = ms / 1000;
    std::tm parts{};
    char text[32] = {};
    if (gmtime_r(&seconds, &parts) == nullptr || std::strftime(text, sizeof text, "%F %T UTC", &parts) == 0)
      return "saved at ?";
    return text;
  }
  static std::string score_text(const CheckpointNote& note, bool best) {
    if (!note.score) return "not measured";
    const double value = note.score->value;
    const std::string mark = best ? " (best)" : "";
    switch (note.score->measure) {
      case Measure::held_out_accuracy: return fmt::format("held-out accuracy {:.1f} %{}", 100 * value, mark);
      case Measure::accuracy: return fmt::format("accuracy {:.1f} %{}", 100 * value, mark);
      case Measure::loss: return fmt::format("loss {:.4g}{}", value, mark);
    }
    return "";
  }

  ExitCode list(const LoadedConfig& loaded, Terminal& terminal) const {
    std::vector<std::string> problems;
    const CheckpointFolder folder(checkpoints_in(loaded.config.device.data_dir));
    const auto all = folder.list(problems);
    auto notes = folder.notes();
    const auto best = best_of(notes);
    auto json = Json::array();
    for (const auto& entry : all) {
      const CheckpointNote& note = notes[entry.stamp];
      if (json_)
        json.push_back({{"file", entry.path},
                        {"lineage", entry.stamp.lineage},
                        {"step", entry.stamp.step},
                        {"saved_ms", note.saved_ms > 0 ? Json(note.saved_ms) : Json()},
                        {"measure", note.score ? Json(name_of(note.score->measure)) : Json()},
                        {"score", note.score ? Json(note.score->value) : Json()},
                        {"best", entry.stamp == best},
                        {"digest", entry.digest.hex()},
                        {"bytes", entry.bytes}});
      else
        terminal.out << fmt::format("{:<12} {:<23}  {:<32}  {}  {:>10} bytes  {}\n", text_of(entry.stamp),
                                    time_text(note.saved_ms), score_text(note, entry.stamp == best),
                                    entry.digest.hex(), entry.bytes, entry.path);
    }
    if (json_) terminal.out << json.dump() << '\n';
    for (const auto& problem : problems) terminal.err << "error: " << problem << '\n';
    return problems.empty() ? ExitCode::ok : ExitCode::failure;
  }

  ExitCode show(const LoadedConfig& loaded, Terminal& terminal) const {
    const auto facts = inspect_state_file(loaded, files_.front());
    if (!facts) return report_error(terminal, facts.error());
    const auto& f = facts.value();
    auto partitions = Json::array();
    std::string lines;
    for (const auto& [id, p] : f.partitions) {
      const std::string& topic = topic_of(id, loaded.config.source.topics);
      partitions.push_back({{"topic", topic},
                            {"partition", id.partition},
                            {"start", p.start.offset},
                            {"next", p.next.offset},
                            {"next_row", p.next.row},
                            {"rows_trained", p.trained},
                            {"rows_dropped", p.all_dropped()}});
      lines += fmt::format("  {}:{}  offsets {} to {}, {} rows trained, {} dropped\n", topic, id.partition,
                           p.start.offset, p.next.offset, p.trained, p.all_dropped());
    }
    if (json_)
      terminal.out << Json{{"lineage", f.stamp.lineage},
                           {"step", f.stamp.step},
                           {"digest", f.digest.hex()},
                           {"rows", f.rows},
                           {"partitions", partitions}}
                          .dump()
                   << '\n';
    else
      terminal.out << fmt::format("step {} (view {}), {} rows, digest {}\n{}", f.stamp.step, f.stamp.lineage,
                                  f.rows, f.digest.hex(), lines);
    return ExitCode::ok;
  }

  ExitCode verify(const LoadedConfig& loaded, Terminal& terminal) const {
    std::vector<std::string> problems;
    auto files = files_;
    if (files.empty())
      for (const auto& e : CheckpointFolder(checkpoints_in(loaded.config.device.data_dir)).list(problems))
        files.push_back(e.path);
    auto good = Json::array();
    for (const auto& file : files) {
      const auto facts = inspect_state_file(loaded, file);
      if (!facts)
        problems.push_back(facts.error().message);
      else if (json_)
        good.push_back(file);
      else
        terminal.out << fmt::format("ok  {}  {}\n", text_of(facts.value().stamp), file);
    }
    if (json_) terminal.out << Json{{"good", good}, {"bad", problems}}.dump() << '\n';
    for (const auto& problem : problems) terminal.err << "error: " << problem << '\n';
    return problems.empty() ? ExitCode::ok : ExitCode::failure;
  }

  ExitCode prune(const LoadedConfig& loaded, Terminal& terminal) const {
    const std::size_t keep = keep_ > 0 ? keep_ : loaded.config.checkpoint.keep;
    const auto pruned = prune_checkpoints(loaded, keep);
    if (!pruned) return report_error(terminal, pruned.error());
    const auto& [files, problems] = pruned.value();
    const auto paths = [](const std::vector<CheckpointEntry>& entries) {
      auto all = Json::array();
      for (const auto& entry : entries) all.push_back(entry.path);
      return all;
    };
    if (json_) {
      terminal.out << Json{{"kept", paths(files.kept)}, {"removed", paths(files.removed)}}.dump() << '\n';
    } else {
      for (const auto& entry : files.removed) terminal.out << fmt::format("removed  {}\n", entry.path);
      for (const auto& entry : files.kept) terminal.out << fmt::format("kept     {}\n", entry.path);
    }
    for (const auto& problem : problems) terminal.err << "error: not deleted: " << problem << '\n';
    return problems.empty() ? ExitCode::ok : ExitCode::failure;
  }

  ExitCode restore(const LoadedConfig& loaded, Terminal& terminal) const {
    const auto restored = restore_checkpoint(loaded, from_);
    if (!restored) return report_error(terminal, restored.error());
    const Restored& r = restored.value();
    const std::uint64_t rounds = r.newest.step > r.to.stamp.step ? r.newest.step - r.to.stamp.step : 0;
    auto offsets = Json::object();
    if (r.from)
      for (const auto& [id, p] : r.from->partitions) {
        const auto at = r.to.partitions.find(id);
        const auto& begins = at == r.to.partitions.end() ? p.start : at->second.next;
        offsets[fmt::format("{}:{}", topic_of(id, loaded.config.source.topics), id.partition)] = {
            begins.offset, p.next.offset};
      }
    const auto rows = r.from ? Json(r.from->rows - r.to.rows) : Json(r.gone.aside.empty() ? Json(0) : Json());
    if (json_)
      terminal.out << Json{{"file", r.file},     {"lineage", r.to.stamp.lineage}, {"step", r.to.stamp.step},
                           {"rows", r.to.rows},  {"aside", r.gone.aside},         {"rounds_again", rounds},
                           {"rows_again", rows}, {"offsets_again", offsets}}
                          .dump()
                   << '\n';
    else
      print_restored(r, rounds, rows, offsets, terminal);
    return ExitCode::ok;
  }
  static void print_restored(const Restored& r, std::uint64_t rounds, const Json& rows, const Json& offsets,
                             Terminal& terminal) {
    terminal.out << fmt::format("resuming from {}: step {} (view {}), {} rows\n", r.file, r.to.stamp.step,
                                r.to.stamp.lineage, r.to.rows);
    for (const auto& path : r.gone.aside) terminal.out << fmt::format("moved to    {}\n", path);
    terminal.out << fmt::format(
        "to be trained again: {} rounds, {}\n", rounds,
        rows.is_null() ? "unknown number of rows (the newer files are damaged)" : rows.dump() + " rows");
    for (const auto& [partition, range] : offsets.items())
      terminal.out << fmt::format("  {}  offsets {} to {}\n", partition, range[0].dump(), range[1].dump());
    terminal.out << "In a group: restore on every device before you start any of them; the group resumes "
                    "from the newest state on its devices.\n";
  }

  /// Describes the exported model's input. A shift is added before normalization.
  static std::string input_of(Normalization normalization, const Config& config) {
    const bool shifted = std::ranges::any_of(config.decode.shift, [](double by) { return by != 0; });
    const std::string shift = fmt::format("decode.{}.shift", config.decode.format);
    switch (normalization) {
      case Normalization::none: break;
      case Normalization::folded:
        return fmt::format(
            "Model input: the features of the records{}; normalization is folded into the "
            "first layer.\n",
            shifted ? ", plus " + shift : "");
      case Normalization::separate:
        return fmt::format(
            "Model input: (x - mean) * factor for each feature, where x is the value in the records{}; the "
            "file's metadata holds them as normalization.mean and normalization.factor.\n",
            shifted ? " plus " + shift : "");
    }
    return "";
  }
  ExitCode write_model(const LoadedConfig& loaded, Terminal& terminal) const {
    const auto exported = export_state_file(loaded, from_, out_, optimizer_out_);
    if (!exported) return report_error(terminal, exported.error());
    const auto& f = exported.value().state;
    const Normalization normalization = exported.value().normalization;
    if (json_)
      terminal.out << Json{{"file", out_},         {"lineage", f.stamp.lineage},
                           {"step", f.stamp.step}, {"digest", f.digest.hex()},
                           {"rows", f.rows},       {"normalization", name_of(normalization)}}
                          .dump()
                   << '\n';
    else
      terminal.out << fmt::format("{}: the model after step {} (view {}), {} rows, digest {}\n", out_,
                                  f.stamp.step, f.stamp.lineage, f.rows, f.digest.hex())
                   << input_of(normalization, loaded.config);
    return ExitCode::ok;
  }

  CLI::App* app_;
  CLI::App* ls_;
  CLI::App* show_;
  CLI::App* verify_;
  CLI::App* prune_;
  CLI::App* restore_;
  CLI::App* export_;
  ConfigFlags ls_flags_;
  ConfigFlags show_flags_;
  ConfigFlags verify_flags_;
  ConfigFlags prune_flags_;
  ConfigFlags restore_flags_;
  ConfigFlags export_flags_;
  std::vector<std::string> files_;
  std::string from_;
  std::string out_;
  std::string optimizer_out_;
  std::size_t keep_ = 0;  ///< 0: from the configuration
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_checkpoint_command(CLI::App& root) {
  return std::make_unique<CheckpointCommand>(root);
}

}  // namespace rivulet::runtime::cli
