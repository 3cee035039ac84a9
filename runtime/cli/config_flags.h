#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/cli/command.h"
#include "runtime/config/config.h"

namespace rivulet::runtime::cli {

/// A flag that is short for a configuration key. `RIVULET_<FLAG>` means the same in the environment.
struct KeyFlag {
  std::string_view flag;   ///< "--data-dir"
  std::string_view key;    ///< "device.data_dir"
  std::string_view value;  ///< name of the value in help
  std::string_view help;
};
/// All of them, in the order of help.
const std::vector<KeyFlag>& key_flags();

/// --config, --set and the flags that are short for keys: what a command needs to load a configuration.
/// Must stay where it is once add_to() was called (the parser writes into it).
class ConfigFlags {
 public:
  ConfigFlags();
  ConfigFlags(const ConfigFlags&) = delete;
  ConfigFlags& operator=(const ConfigFlags&) = delete;
  /// Offers all key flags, or only `flags`.
  void add_to(CLI::App& app);
  void add_to(CLI::App& app, const std::vector<std::string_view>& flags);
  void set_file(const std::string& file) { file_ = file; }
  /// A value that a command decides itself, as if its flag had been given.
  void set_key(const std::string& key, const std::string& toml) { decided_.emplace_back(key, toml); }
  /// --set names this key.
  [[nodiscard]] bool sets(std::string_view key) const;
  /// The command opens no stream of the configuration: topics and brokers may be missing.
  void without_stream() { needs_stream_ = false; }
  [[nodiscard]] ConfigInput input(const Terminal& terminal) const;
  [[nodiscard]] const std::string& file() const noexcept { return file_; }

 private:
  bool needs_stream_ = true;
  std::string file_;
  std::vector<std::string> sets_;
  std::vector<std::string> values_;  ///< parallel to key_flags(); empty = not given
  std::vector<std::pair<std::string, std::string>> decided_;
};

/// The flag's text as the TOML value of its key: lists from "a,b" and "0-3", strings quoted.
std::string toml_of_flag(std::string_view key, const std::string& text);

/// librdkafka's errors on the properties, each at the line of the one that it names.
void add_property_problems(LoadedConfig& loaded);
/// An error at the place of `key`, without the secrets that `message` quotes.
void add_problem_at(LoadedConfig& loaded, const std::string& key, const std::string& message);
/// Loads and asks librdkafka about its properties; prints every problem on terminal.err. nullopt: not usable,
/// exit with ExitCode::configuration.
std::optional<LoadedConfig> load_or_complain(const ConfigFlags& flags, Terminal& terminal);
/// Problems with their places and hints, then "3 errors, 0 warnings"; nothing when there are none.
void print_problems(const std::vector<Problem>& problems, std::ostream& out);
std::size_t count_errors(const std::vector<Problem>& problems);

}  // namespace rivulet::runtime::cli
