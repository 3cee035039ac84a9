#include "runtime/config/layers.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "runtime/config/coerce.h"
#include "runtime/config/toml_text.h"

namespace rivulet::runtime {

namespace {

std::vector<std::string> known_names() {
  std::set<std::string> names;
  for (const auto& row : key_rows()) {
    const std::string& key = row.spec.key;
    for (auto dot = key.find('.'); dot != std::string::npos; dot = key.find('.', dot + 1))
      names.insert(key.substr(0, dot));
    names.insert(key);
  }
  names.insert("source.kafka");
  names.insert("source.kafka.properties");
  return {names.begin(), names.end()};
}

std::string parent_of(const std::string& key) {
  const auto dot = key.rfind('.');
  return dot == std::string::npos ? "" : key.substr(0, dot + 1);
}

/// Suggests 'format' for 'decode.frmat', 'decode.format' for 'decod.frmat'.
std::string suggestion(const std::string& key) {
  const std::string parent = parent_of(key);
  std::vector<std::string> siblings;
  for (const auto& name : known_names()) {
    if (parent_of(name) == parent) siblings.push_back(name.substr(parent.size()));
  }
  const std::string close = did_you_mean(key.substr(parent.size()), siblings);
  return close.empty() ? did_you_mean(key, known_names()) : close;
}

void report_unknown(Problems& problems, const Setting& setting, const std::string& name, bool table) {
  report_error(problems, setting,
               std::string(table ? "unknown table '" : "unknown key '") + name + "'" + suggestion(name));
}

std::string dotted(const std::vector<std::string>& path, std::size_t count) {
  std::string key;
  for (std::size_t i = 0; i < count; ++i) key += (i > 0 ? "." : "") + path[i];
  return key;
}

/// A later value of a key that is also a table replaces the table.
void put(SettingsByKey& settings, Setting setting) {
  if (find_row(setting.key) != nullptr)
    std::erase_if(settings, [&](const auto& entry) { return entry.first.starts_with(setting.key + "."); });
  const std::string key = setting.key;
  settings[key] = std::move(setting);
}

/// Collects the settings of one document, all with the same source.
class Document {
 public:
  Document(std::string source, SettingsByKey& settings, Problems& problems)
      : source_(std::move(source)), settings_(settings), problems_(problems) {}

  /// `origin`: empty = the file and line of the key.
  void take(const TomlLeaf& leaf, const std::string& origin) {
    Setting setting{dotted(leaf.path, leaf.path.size()), leaf.value, leaf.places.back(), source_, origin};
    if (origin.empty()) setting.origin = source_ + ":" + std::to_string(setting.place.line);
    if (!path_is_known(leaf, setting)) return;
    if (is_property(setting.key) || find_row(setting.key) != nullptr) {
      put(settings_, std::move(setting));
    } else if (const auto* other = std::get_if<Value::Other>(&leaf.value.data);
               other == nullptr || other->what != "a table") {
      report_error(problems_, setting,
                   "'" + setting.key + "' must be a table of keys, not " + describe(leaf.value));
    }
  }

 private:
  /// Reports the first unknown name in the path. Each unknown name is reported only once.
  bool path_is_known(const TomlLeaf& leaf, Setting setting) {
    const std::size_t n = leaf.path.size();
    for (std::size_t i = 1; i <= n; ++i) {
      const std::string name = dotted(leaf.path, i);
      const bool key = find_row(name) != nullptr;
      if (is_property(name) || is_table(name) || (key && i == n)) continue;
      if (!reported_.insert(name).second) return false;
      setting.place = leaf.places[i - 1];
      if (key) {
        report_error(problems_, setting,
                     "'" + name + "' must be " + with_article(find_row(name)->spec.type) + ", not a table");
      } else {
        report_unknown(problems_, setting, name,
                       i < n || std::holds_alternative<Value::Other>(leaf.value.data));
      }
      return false;
    }
    return true;
  }

  std::string source_;
  SettingsByKey& settings_;
  Problems& problems_;
  std::set<std::string> reported_;
};

/// Adds one key and its value given as text outside a file.
void add_text(const std::string& key, const std::string& text, const Setting& from, SettingsByKey& settings,
              Problems& problems) {
  Setting setting = from;
  setting.key = key;
  if (is_property(key)) {
    setting.value = value_of_text(kind::text, text);
    settings[key] = std::move(setting);
    return;
  }
  const KeyRow* row = find_row(key);
  if (row != nullptr && !(is_table(key) && text.starts_with('{'))) {
    setting.value = value_of_text(row->spec.type, text);
    setting.key = row->spec.key;
    put(settings, std::move(setting));
    return;
  }
  if (!is_table(key)) {
    report_unknown(problems, setting, key, false);
    return;
  }
  const auto table = read_toml(key + " = " + text, from.source);
  const bool is_inline = table.problems.empty() && text.find('{') != std::string::npos;
  if (!is_inline)
    report_error(problems, setting,
                 "'" + key + "' is a table: set it to { key = value, ... }, or set one of its keys");
  Document document(from.source, settings, problems);
  for (TomlLeaf leaf : is_inline ? table.leaves : std::vector<TomlLeaf>()) {
    leaf.value.place = {};
    std::fill(leaf.places.begin(), leaf.places.end(), KeyPlace{});
    document.take(leaf, from.origin);
  }
}

/// BATCH__MAX_WAIT -> batch.max_wait. Client properties have no underscores, so there each underscore is a
/// dot.
std::string key_of_variable(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (auto at = text.find("__"); at != std::string::npos; at = text.find("__", at + 1))
    text.replace(at, 2, ".");
  if (is_property(text))
    std::replace(text.begin() + std::string(property_prefix).size(), text.end(), '_', '.');
  return text;
}

constexpr const char* set_prefix = "RIVULET_SET_";

/// Variables for flags that set a key. Flags with an empty key are read elsewhere.
const std::vector<std::pair<std::string, std::string>>& known_variables() {
  static const std::vector<std::pair<std::string, std::string>> all = {
      {"RIVULET_ID", "device.id"},
      {"RIVULET_BROKERS", "source.kafka.properties.bootstrap.servers"},
      {"RIVULET_TOPIC", "source.topics"},
      {"RIVULET_PARTITIONS", "source.partitions"},
      {"RIVULET_DEVICES", "job.devices"},
      {"RIVULET_WANTED", "job.devices.wanted"},
      {"RIVULET_DATA_DIR", "device.data_dir"},
      {"RIVULET_HTTP", "http.listen"},
      {"RIVULET_HTTP_TOKEN_FILE", "http.token_file"},
      {"RIVULET_PEER_BIND", "sync.bind"},
      {"RIVULET_ADVERTISE", "sync.advertise"},
      {"RIVULET_CONFIG", ""},
      {"RIVULET_STOP_AFTER", ""},
      {"RIVULET_DRY_RUN", ""},
      {"RIVULET_JSON", ""},
      {"RIVULET_CACHE", ""},
      {"RIVULET_FULL", ""},
      {"RIVULET_LIBTORCH", ""},
  };
  return all;
}

void warn_unknown_variable(const std::string& name, Problems& problems) {
  std::vector<std::string> names;
  for (const auto& known : known_variables()) names.push_back(known.first);
  if (std::find(names.begin(), names.end(), name) != names.end()) return;
  Problem problem;
  problem.warning = true;
  problem.file = "environment " + name;
  problem.message = "unknown variable" + did_you_mean(name, names);
  problem.hint = "any key can be set as RIVULET_SET_<TABLE>__<KEY>";
  problems.push_back(std::move(problem));
}

}  // namespace

void add_file(const std::string& path, SettingsByKey& settings, std::map<std::string, KeyPlace>& places,
              Problems& problems) {
  std::error_code trouble;
  const auto status = std::filesystem::status(path, trouble);
  const bool regular = std::filesystem::is_regular_file(status);
  std::ifstream file;
  std::ostringstream text;
  if (regular) file.open(path, std::ios::binary);
  if (regular && file && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  if (!regular || !file.is_open() || file.bad()) {
    Problem problem;
    problem.file = path;
    problem.message = !std::filesystem::exists(status) ? "the file does not exist"
                      : !regular                       ? "not a regular file"
                                                       : "the file cannot be read";
    problems.push_back(std::move(problem));
    return;
  }
  auto parsed = read_toml(text.str(), path);
  problems.insert(problems.end(), parsed.problems.begin(), parsed.problems.end());
  Document document(path, settings, problems);
  for (const auto& leaf : parsed.leaves) {
    document.take(leaf, "");
    places[dotted(leaf.path, leaf.path.size())] = leaf.places.back();
  }
}

void add_environment(const std::map<std::string, std::string>& environment, SettingsByKey& settings,
                     Problems& problems) {
  const auto from = [](const std::string& name) {
    return Setting{"", {}, {}, "environment " + name, "environment " + name};
  };
  for (const auto& [name, value] : environment) {
    if (name.starts_with(set_prefix)) {
      add_text(key_of_variable(name.substr(std::string(set_prefix).size())), value, from(name), settings,
               problems);
    } else if (name.starts_with("RIVULET_")) {
      warn_unknown_variable(name, problems);
    }
  }
  for (const auto& [name, key] : known_variables()) {
    const auto it = environment.find(name);
    if (it != environment.end() && !key.empty()) add_text(key, it->second, from(name), settings, problems);
  }
}

void add_sets(const std::vector<std::string>& sets, SettingsByKey& settings, Problems& problems) {
  for (const auto& text : sets) {
    const auto equals = text.find('=');
    const std::string key = text.substr(0, equals);
    const Setting from{"", {}, {}, "--set " + key, "--set"};
    if (equals == std::string::npos || key.empty()) {
      report_error(problems, from, "expected key=value");
      continue;
    }
    add_text(key, text.substr(equals + 1), from, settings, problems);
  }
}

void add_flags(const std::vector<std::pair<std::string, std::string>>& flags, SettingsByKey& settings,
               Problems& problems) {
  for (const auto& [key, text] : flags)
    add_text(key, text, Setting{"", {}, {}, "flag for " + key, "flag"}, settings, problems);
}

}  // namespace rivulet::runtime
