#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>

#include "runtime/cli/config_flags.h"
#include "runtime/cli/rows/config_from_topic.h"
#include "runtime/process/signals.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* config_footer = R"(Examples:
  rivulet config init > device.toml                 an annotated configuration with all keys
  rivulet config show --config device.toml --origin effective values and their origin
  rivulet config keys | grep batch                  type, default and meaning of keys)";
constexpr const char* keys_footer = R"(Examples:
  rivulet config keys
  rivulet config keys --json | jq '.[] | select(.group) | .key'     keys that must be equal on all devices)";
constexpr const char* init_footer = R"(Examples:
  rivulet config init > device.toml
  rivulet config init --output device.toml          does not overwrite an existing file
  rivulet config init --from-topic sensors --brokers localhost:9092 > device.toml
  rivulet config init --from-topic sensors --brokers localhost:9092 --target state --set model.mlp.hidden=[32]

--from-topic reads the newest records and guesses format, features, target, classes and scale. It reports on stderr
what it guessed and what it could not guess. Values from --set replace guesses. The command
does not join a group and commits no offsets.)";
constexpr const char* show_footer = R"(Examples:
  rivulet config show --config device.toml
  rivulet config show --config device.toml --origin --set batch.tick=200ms
  RIVULET_SET_TRAIN__CLIP_GRAD_NORM=1.0 rivulet config show --origin --set job.name=mnist
A later source overrides an earlier one: defaults, file, RIVULET_* variables, --set, flags. Secrets are never shown.)";

class ConfigCommand final : public Command {
 public:
  explicit ConfigCommand(CLI::App& root)
      : app_(root.add_subcommand("config", "write a configuration, or show effective values")),
        init_(app_->add_subcommand("init", "write an annotated configuration: keys, defaults, meaning")),
        show_(app_->add_subcommand("show", "show every key with its effective value")),
        keys_(app_->add_subcommand("keys", "list all keys: type, default, meaning")) {
    app_->require_subcommand(1);
    app_->footer(config_footer);
    init_->add_option("-o,--output", output_, "new file to write instead of stdout")->type_name("FILE");
    init_->add_option("--from-topic", topic_, "derive the configuration from this topic's records")
        ->type_name("TOPIC");
    init_->add_option("--target", target_, "with --from-topic: name of the field or column to predict")
        ->type_name("NAME");
    init_->add_option("--rows", rows_, "with --from-topic: number of newest records to read")
        ->type_name("N")
        ->capture_default_str()
        ->check(CLI::Range(1, 100'000));
    init_flags_.add_to(*init_, {"--brokers"});
    init_->footer(init_footer);
    flags_.add_to(*show_);
    show_->add_flag("--origin", origin_, "also print the origin of each value");
    show_->add_flag("--json", json_, "one JSON object: key -> {value, origin}");
    show_->footer(show_footer);
    keys_->add_flag("--json", json_, "one JSON array of objects");
    keys_->footer(keys_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }
  ExitCode execute(Terminal& terminal) override {
    if (keys_->parsed()) return keys(terminal);
    return init_->parsed() ? init(terminal) : show(terminal);
  }

 private:
  ExitCode init(Terminal& terminal) {
    if (!output_.empty() && std::filesystem::exists(output_)) {
      terminal.err << "error: " << output_ << " already exists; nothing was written\n";
      return ExitCode::failure;
    }
    if (topic_.empty()) return write(terminal, config_template());
    StopRequest stop{0};
    const SignalHandlers handlers(stop);
    const auto made = config_from_topic(init_flags_.input(terminal), topic_, target_, rows_, stop);
    if (!made) return report_error(terminal, made.error());
    for (const auto& note : made.value().notes) terminal.err << note << '\n';
    return write(terminal, made.value().text);
  }

  ExitCode write(Terminal& terminal, const std::string& text) const {
    if (output_.empty()) {
      terminal.out << text;
      return ExitCode::ok;
    }
    std::ofstream file(output_);
    file << text;
    if (!file.flush()) {
      terminal.err << "error: cannot write " << output_ << '\n';
      return ExitCode::failure;
    }
    terminal.out << "wrote " << output_ << "; next: rivulet validate " << output_ << '\n';
    return ExitCode::ok;
  }

  ExitCode show(Terminal& terminal) {
    const auto loaded = load_config(flags_.input(terminal));
    nlohmann::ordered_json all;
    for (const auto& [key, value] : loaded.effective) {
      const auto from = loaded.origin.find(key);
      const std::string origin = from == loaded.origin.end() ? "default" : from->second;
      if (json_) {
        all[key] = {{"value", value}, {"origin", origin}};
      } else if (origin_) {
        terminal.out << fmt::format("{:<60}  # {}\n", fmt::format("{} = {}", key, value), origin);
      } else {
        terminal.out << key << " = " << value << '\n';
      }
    }
    if (json_) terminal.out << all.dump() << '\n';
    print_problems(loaded.problems, terminal.err);
    return loaded.usable() ? ExitCode::ok : ExitCode::configuration;
  }

  /// Prints the keys that this version supports.
  ExitCode keys(Terminal& terminal) const {
    auto all = nlohmann::ordered_json::array();
    for (const KeySpec& spec : key_table()) {
      if (!spec.since.empty()) continue;
      all.push_back({{"key", spec.key},
                     {"type", spec.type},
                     {"default", spec.text},
                     {"choices", spec.choices},
                     {"group", spec.group},
                     {"secret", spec.secret},
                     {"help", spec.help}});
      if (!json_)
        terminal.out << fmt::format("{:<40} {:<16} {:<20} {}{}\n", spec.key, spec.type, spec.text, spec.help,
                                    spec.group ? " [group]" : "");
    }
    if (json_) terminal.out << all.dump() << '\n';
    return ExitCode::ok;
  }

  CLI::App* app_;
  CLI::App* init_;
  CLI::App* show_;
  CLI::App* keys_;
  ConfigFlags flags_;
  ConfigFlags init_flags_;
  std::string output_;
  std::string topic_;
  std::string target_;
  std::uint64_t rows_ = 500;
  bool origin_ = false;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> make_config_command(CLI::App& root) {
  return std::make_unique<ConfigCommand>(root);
}

}  // namespace rivulet::runtime::cli
