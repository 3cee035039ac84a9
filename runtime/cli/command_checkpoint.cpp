#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "runtime/checkpoint_folder.h"
#include "runtime/cli/command.h"
#include "runtime/cli/config_flags.h"
#include "runtime/cli/evaluation.h"

namespace rivulet::runtime::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* checkpoint_footer = R"(Examples:
  rivulet checkpoint ls --config device.toml              the files of this device, newest first
  rivulet checkpoint verify --config device.toml          every byte of each; exit code 1 if one cannot be used
  rivulet checkpoint show --config device.toml FILE       how far the group had come, in every partition

Any device's checkpoint holds the state of the whole group.)";

class CheckpointCommand final : public Command {
 public:
  explicit CheckpointCommand(CLI::App& root)
      : app_(root.add_subcommand("checkpoint", "look at saved states: ls, show, verify")),
        ls_(app_->add_subcommand("ls", "the checkpoints of this device, newest first")),
        show_(app_->add_subcommand("show", "one state: stamp, digest, partitions")),
        verify_(app_->add_subcommand("verify", "read every byte; all of this device's without FILE")) {
    app_->require_subcommand(1);
    app_->footer(checkpoint_footer);
    for (CLI::App* sub : {ls_, show_, verify_}) sub->add_flag("--json", json_, "one JSON object");
    ls_flags_.add_to(*ls_);
    show_flags_.add_to(*show_);
    verify_flags_.add_to(*verify_);
    show_->add_option("file", files_, "the checkpoint")->type_name("FILE")->required()->expected(1);
    verify_->add_option("file", files_, "checkpoints")->type_name("FILE");
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    ConfigFlags& flags = ls_->parsed() ? ls_flags_ : show_->parsed() ? show_flags_ : verify_flags_;
    flags.without_stream();
    const auto loaded = load_or_complain(flags, terminal);
    if (!loaded) return ExitCode::configuration;
    if (ls_->parsed()) return list(*loaded, terminal);
    return show_->parsed() ? show(*loaded, terminal) : verify(*loaded, terminal);
  }

 private:
  ExitCode list(const LoadedConfig& loaded, Terminal& terminal) const {
    std::vector<std::string> complaints;
    const auto all = CheckpointFolder(checkpoints_in(loaded.config.device.data_dir)).list(complaints);
    auto json = Json::array();
    for (const auto& entry : all) {
      if (json_)
        json.push_back({{"file", entry.path},
                        {"lineage", entry.stamp.lineage},
                        {"step", entry.stamp.step},
                        {"digest", entry.digest.hex()},
                        {"bytes", entry.bytes}});
      else
        terminal.out << fmt::format("{:<12} {}  {:>10} bytes  {}\n", text_of(entry.stamp), entry.digest.hex(),
                                    entry.bytes, entry.path);
    }
    if (json_) terminal.out << json.dump() << '\n';
    for (const auto& complaint : complaints) terminal.err << "error: " << complaint << '\n';
    return complaints.empty() ? ExitCode::ok : ExitCode::failure;
  }

  ExitCode show(const LoadedConfig& loaded, Terminal& terminal) const {
    const auto facts = inspect_state_file(loaded, files_.front());
    if (!facts) return complain(terminal, facts.error());
    const auto& f = facts.value();
    auto partitions = Json::array();
    std::string lines;
    for (const auto& [id, p] : f.partitions) {
      const std::string& topic = topic_of(loaded, id);
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
    std::vector<std::string> complaints;
    auto files = files_;
    if (files.empty())
      for (const auto& e : CheckpointFolder(checkpoints_in(loaded.config.device.data_dir)).list(complaints))
        files.push_back(e.path);
    auto good = Json::array();
    for (const auto& file : files) {
      const auto facts = inspect_state_file(loaded, file);
      if (!facts)
        complaints.push_back(facts.error().message);
      else if (json_)
        good.push_back(file);
      else
        terminal.out << fmt::format("ok  {}  {}\n", text_of(facts.value().stamp), file);
    }
    if (json_) terminal.out << Json{{"good", good}, {"bad", complaints}}.dump() << '\n';
    for (const auto& complaint : complaints) terminal.err << "error: " << complaint << '\n';
    return complaints.empty() ? ExitCode::ok : ExitCode::failure;
  }

  static const std::string& topic_of(const LoadedConfig& loaded, const PartitionId& id) {
    static const std::string unknown = "?";
    const auto& topics = loaded.config.source.topics;
    return id.topic < topics.size() ? topics[id.topic] : unknown;
  }

  CLI::App* app_;
  CLI::App* ls_;
  CLI::App* show_;
  CLI::App* verify_;
  ConfigFlags ls_flags_;
  ConfigFlags show_flags_;
  ConfigFlags verify_flags_;
  std::vector<std::string> files_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_checkpoint_command(CLI::App& root) {
  return std::make_unique<CheckpointCommand>(root);
}

}  // namespace rivulet::runtime::cli
