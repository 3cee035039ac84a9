#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cli/command.h"
#include "runtime/config/config.h"

namespace rivulet::runtime::cli {

/// Short flag for a configuration key. `RIVULET_<FLAG>` in the environment has the same effect.
struct KeyFlag {
  std::string_view flag;   ///< "--data-dir"
  std::string_view key;    ///< "device.data_dir"
  std::string_view value;  ///< placeholder of the value in help
  std::string_view help;
};
/// All key flags in help order.
const std::vector<KeyFlag>& key_flags();

/// --config, --set and the key flags: the input for loading a configuration. Must not move after add_to():
/// the parser writes into it.
class ConfigFlags {
 public:
  ConfigFlags();
  ConfigFlags(const ConfigFlags&) = delete;
  ConfigFlags& operator=(const ConfigFlags&) = delete;
  /// Adds all key flags, or only `flags`.
  void add_to(CLI::App& app);
  void add_to(CLI::App& app, const std::vector<std::string_view>& flags);
  void set_file(const std::string& file) { file_ = file; }
  /// Sets a key on behalf of the command, as if its flag had been given.
  void set_key(const std::string& key, const std::string& toml) { decided_.emplace_back(key, toml); }
  /// True if its flag or --set names this key.
  [[nodiscard]] bool sets(std::string_view key) const;
  /// For commands that open no stream: topics and brokers may be missing.
  void without_stream() { needs_stream_ = false; }
  [[nodiscard]] ConfigInput input(const Terminal& terminal) const;
  [[nodiscard]] const std::string& file() const noexcept { return file_; }

 private:
  bool needs_stream_ = true;
  std::string file_;
  std::vector<std::string> sets_;
  std::vector<std::string> values_;  ///< parallel to key_flags(); empty if not given
  std::vector<std::pair<std::string, std::string>> decided_;
};

/// Returns the flag's text as a TOML value: lists from "a,b" and "0-3", strings quoted.
std::string toml_of_flag(std::string_view key, const std::string& text);

/// Adds librdkafka's errors about its properties, each at the line of that property.
void add_property_problems(LoadedConfig& loaded);
/// Adds an error at the place of `key`. Masks secrets that `message` quotes.
void add_problem_at(LoadedConfig& loaded, const std::string& key, const std::string& message);
/// Loads the configuration, lets librdkafka check its properties, and prints all problems on terminal.err.
/// Returns nullopt if it is unusable; the command then exits with ExitCode::configuration.
std::optional<LoadedConfig> load_or_report(const ConfigFlags& flags, Terminal& terminal);
/// Prints problems with places and hints, then "3 errors, 0 warnings". Prints nothing if there are no
/// problems.
void print_problems(const std::vector<Problem>& problems, std::ostream& out);
std::size_t count_errors(const std::vector<Problem>& problems);

}  // namespace rivulet::runtime::cli
