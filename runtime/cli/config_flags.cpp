#include "runtime/cli/config_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <ostream>

#include "runtime/cli/text.h"
#include "runtime/config/secrets.h"
#include "stream/open.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* property_prefix = "source.kafka.properties.";

/// `origin` is "file:line" for keys from the file.
void place(Problem& problem, const std::string& origin) {
  const auto colon = origin.rfind(':');
  const bool has_line = colon != std::string::npos && colon + 1 < origin.size() &&
                        origin.find_first_not_of("0123456789", colon + 1) == std::string::npos &&
                        origin.size() - colon <= 8;
  problem.file = has_line ? origin.substr(0, colon) : origin;
  if (has_line) problem.line = std::stoi(origin.substr(colon + 1));
  if (has_line) problem.column = 1;
}

/// "--data-dir" -> "RIVULET_DATA_DIR".
std::string variable_of(std::string_view flag) {
  std::string name = "RIVULET_";
  for (const char c : flag.substr(2))
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return name;
}

bool all_digits(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// "0-3" -> 0, 1, 2, 3. Leaves other text as it is for the schema to check.
std::vector<std::string> partitions_of(const std::string& item) {
  const auto dash = item.find('-');
  const bool range = dash != std::string::npos && dash <= 6 && item.size() - dash <= 7 &&
                     all_digits(item.substr(0, dash)) && all_digits(item.substr(dash + 1));
  if (!range) return {all_digits(item) ? item : toml_string(item)};
  std::vector<std::string> all;
  for (int p = std::stoi(item); p <= std::stoi(item.substr(dash + 1)); ++p) all.push_back(std::to_string(p));
  return all;
}

}  // namespace

const std::vector<KeyFlag>& key_flags() {
  static const std::vector<KeyFlag> flags = {
      {"--id", "device.id", "NAME", "name of this device, unique in the job"},
      {"--brokers", "source.kafka.properties.bootstrap.servers", "HOST:PORT,...", "Kafka brokers"},
      {"--topic", "source.topics", "TOPIC[,TOPIC]", "topics of the job"},
      {"--partitions", "source.partitions", "0,2 or 0-3", "partitions this device consumes"},
      {"--devices", "job.devices", "N|MIN-MAX", "number of devices in the group"},
      {"--wanted", "job.devices.wanted", "N", "usual number of devices if --devices is a range"},
      {"--data-dir", "device.data_dir", "DIR", "directory for all files that this device writes"},
      {"--http", "http.listen", "HOST:PORT",
       "address of the metrics, health and status pages; 'off' disables them"},
      {"--peer-bind", "sync.bind", "INTERFACE|ADDRESS",
       "interface or address on which this device listens for peers"},
      {"--advertise", "sync.advertise", "ADDRESS",
       "address to which peers connect if it differs from sync.bind (NAT)"},
  };
  return flags;
}

std::string toml_of_flag(std::string_view key, const std::string& text) {
  if (key.starts_with("job.devices")) return text;
  if (key != "source.topics" && key != "source.partitions") return toml_string(text);
  std::vector<std::string> items;
  for (const auto& item : split(text, ',')) {
    if (key == "source.topics") {
      items.push_back(toml_string(item));
    } else {
      const auto expanded = partitions_of(item);
      items.insert(items.end(), expanded.begin(), expanded.end());
    }
  }
  return fmt::format("[{}]", fmt::join(items, ", "));
}

ConfigFlags::ConfigFlags() : values_(key_flags().size()) {}

void ConfigFlags::add_to(CLI::App& app) {
  std::vector<std::string_view> all;
  for (const auto& spec : key_flags()) all.push_back(spec.flag);
  add_to(app, all);
}

void ConfigFlags::add_to(CLI::App& app, const std::vector<std::string_view>& flags) {
  app.add_option("-c,--config", file_, "configuration of this device (TOML)")
      ->type_name("FILE")
      ->envname("RIVULET_CONFIG");
  for (std::size_t i = 0; i < key_flags().size(); ++i) {
    const auto& spec = key_flags()[i];
    if (std::find(flags.begin(), flags.end(), spec.flag) == flags.end()) continue;
    app.add_option(std::string(spec.flag), values_[i],
                   fmt::format("{} ({}; {})", spec.help, spec.key, variable_of(spec.flag)))
        ->type_name(std::string(spec.value))
        ->check(not_empty);
  }
  app.add_option("--set", sets_, "value of any configuration key; may be repeated")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->allow_extra_args(false)  // consumes one value, not the arguments after it
      ->take_all();
}

bool ConfigFlags::sets(std::string_view key) const {
  for (std::size_t i = 0; i < key_flags().size(); ++i)
    if (key_flags()[i].key == key && !values_[i].empty()) return true;
  return std::any_of(sets_.begin(), sets_.end(),
                     [&](const std::string& set) { return set.substr(0, set.find('=')) == key; });
}

ConfigInput ConfigFlags::input(const Terminal& terminal) const {
  ConfigInput input;
  input.file = file_;
  input.sets = sets_;
  input.flags = decided_;
  for (std::size_t i = 0; i < key_flags().size(); ++i) {
    const auto& spec = key_flags()[i];
    if (!values_[i].empty()) input.flags.emplace_back(spec.key, toml_of_flag(spec.key, values_[i]));
  }
  input.needs_stream = needs_stream_;
  input.environment = terminal.environment;
  input.environment.erase("RIVULET_DATA");  // used by the demo only; load_config() checks all others
  return input;
}

std::size_t count_errors(const std::vector<Problem>& problems) {
  return static_cast<std::size_t>(
      std::count_if(problems.begin(), problems.end(), [](const Problem& p) { return !p.warning; }));
}

void print_problems(const std::vector<Problem>& problems, std::ostream& out) {
  for (const auto& problem : problems) out << problem.text() << '\n';
  if (problems.empty()) return;
  const auto errors = count_errors(problems);
  const auto warnings = problems.size() - errors;
  out << fmt::format("{} error{}, {} warning{}\n", errors, errors == 1 ? "" : "s", warnings,
                     warnings == 1 ? "" : "s");
}

void add_problem_at(LoadedConfig& loaded, const std::string& key, const std::string& message) {
  Problem problem;
  problem.message = masked(message, loaded.secrets);
  if (const auto origin = loaded.origin.find(key); origin != loaded.origin.end())
    place(problem, origin->second);
  loaded.problems.push_back(std::move(problem));
}

void add_property_problems(LoadedConfig& loaded) {
  const auto& properties = loaded.config.source.kafka_properties;
  for (const std::string& message : stream::check_kafka_properties(properties)) {
    // Some errors concern several properties, as a mechanism and its options: match by name in the text.
    const auto named = std::find_if(properties.begin(), properties.end(), [&message](const auto& property) {
      return message.find(property.first) != std::string::npos;
    });
    Problem problem;
    problem.message = masked(message, loaded.secrets);  // librdkafka quotes rejected values
    if (named != properties.end()) {
      const auto origin = loaded.origin.find(property_prefix + named->first);
      if (origin != loaded.origin.end()) place(problem, origin->second);
    }
    const bool known = std::any_of(loaded.problems.begin(), loaded.problems.end(), [&](const Problem& p) {
      return p.line == problem.line && !p.warning && p.line > 0;
    });
    if (!known) loaded.problems.push_back(std::move(problem));
  }
}

std::optional<LoadedConfig> load_or_report(const ConfigFlags& flags, Terminal& terminal) {
  auto loaded = load_config(flags.input(terminal));
  add_property_problems(loaded);
  print_problems(loaded.problems, terminal.err);
  if (loaded.usable()) return loaded;
  if (flags.file().empty())
    terminal.err << "no configuration given: use --config device.toml ('rivulet config init > device.toml' "
                    "writes one)\n";
  return std::nullopt;
}

}  // namespace rivulet::runtime::cli
