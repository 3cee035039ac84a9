#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>
#include <span>
#include <vector>

#include "core/digest.h"
#include "core/nearest.h"
#include "runtime/config/check.h"
#include "runtime/config/claims.h"
#include "runtime/config/coerce.h"
#include "runtime/config/key_row_parts.h"
#include "runtime/config/key_rows.h"
#include "runtime/config/layers.h"
#include "runtime/config/secrets.h"
#include "runtime/config/sizes.h"
#include "sync/membership/records.h"
#include "sync/message/facts.h"

namespace rivulet::runtime {

namespace {

/// Returns the host name. Needed because shells set HOSTNAME but do not export it.
std::optional<std::string> host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return std::nullopt;
  return name.data();
}

Variables variables_of(const ConfigInput& input) {
  if (input.variable) return input.variable;
  return [environment = input.environment](const std::string& name) -> std::optional<std::string> {
    if (const auto it = environment.find(name); it != environment.end()) return it->second;
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): before any thread
    if (value != nullptr) return value;
    return name == "HOSTNAME" ? host_name() : std::nullopt;
  };
}

/// Whether the value of this property is itself a secret, not the location or metadata of one.
bool is_password_property(const std::string& key) {
  constexpr std::array ends{"password", "secret", "ssl.key.pem", "oauthbearer.config"};
  return is_property(key) &&
         std::any_of(ends.begin(), ends.end(), [&](const char* end) { return key.ends_with(end); });
}

/// Whether the key is a misspelt secret property ("sasl.pasword").
bool is_misspelt_secret(const std::string& key) {
  if (!is_property(key)) return false;
  static const std::vector<std::string> names{
      "sasl.password",          "ssl.key.password", "ssl.key.pem",
      "ssl.keystore.password",  "sasl.jaas.config", "sasl.oauthbearer.client.secret",
      "sasl.oauthbearer.config"};
  return !nearest(key.substr(std::string(property_prefix).size()), names).empty();
}

/// Whether the value is a single ${...}, so that its text contains no part of a secret.
bool is_reference(const Value& value) {
  const std::string& text = value.written;
  return value.interpolated && text.starts_with("${") && text.find('}') + 1 == text.size() &&
         text.find(":-") == std::string::npos;
}

/// One load. Each step uses the results of the previous step.
class Loader {
 public:
  explicit Loader(const ConfigInput& input) : input_(input), variables_(variables_of(input)) {}

  LoadedConfig load() {
    gather();
    keys();
    sizes();
    properties();
    by_format();
    claims();
    const auto catalog = input_.catalog ? *input_.catalog : builtin_catalog_names();
    if (readable_) check_all({input_, out_.config, written_, failed_}, catalog, problems_);
    out_.problems = sorted();
    for (Problem& problem : out_.problems) problem.message = masked(std::move(problem.message), out_.secrets);
    return std::move(out_);
  }

 private:
  void gather() {
    if (!input_.file.empty()) add_file(input_.file, written_, out_.places, problems_);
    // If the file is unreadable, reports only that, not missing keys.
    readable_ = problems_.empty() || !written_.empty();
    add_environment(input_.environment, written_, problems_);
    add_sets(input_.sets, written_, problems_);
    add_flags(input_.flags, written_, problems_);
  }

  void keys() {
    for (const auto& row : key_rows()) {
      const std::string& key = row.spec.key;
      const Setting standard = default_setting(row, input_.file);
      const auto it = written_.find(key);
      Setting setting = it == written_.end() ? standard : it->second;
      auto value = value_of(row, setting, problems_);
      if (!value) {
        failed_.insert(key);
        Problems ignored;
        setting = standard;
        value = value_of(row, setting, ignored);
      }
      if (!value) continue;
      setting.value = *value;
      if (row.set != nullptr) row.set(out_.config, *value);
      if (row.of_entry) out_.config.settings.set(key, setting_of(row, *value));
      // Unsupported keys are shown only if set explicitly.
      if (row.spec.since.empty() || it != written_.end()) note(setting);
      if (row.spec.group && out_.effective.contains(key)) out_.group_values[key] = group_text(key, *value);
      settings_[key] = setting;
    }
  }

  /// Shows the sizes of the group as one key, in one form.
  void sizes() {
    resolve_sizes(out_.config, settings_, written_, problems_);
    const std::string key = "job.devices";
    const GroupSizes& devices = out_.config.job.devices;
    const std::string text = text_of(devices);
    const bool is_range = !devices.is_fixed() && text.front() != '{';
    out_.effective[key] = is_range ? "\"" + text + "\"" : text;
    out_.group_values[key] = text;
    for (const char* part : size_keys) {
      if (written_.contains(part) && !written_.contains(key)) out_.origin[key] = out_.origin[part];
      out_.effective.erase(part);
      out_.group_values.erase(part);
      out_.origin.erase(part);
    }
  }

  void note(const Setting& setting) {
    const Value& value = setting.value;
    const bool secret = is_secret_property(setting.key) || is_misspelt_secret(setting.key);
    const bool hidden = secret && !is_reference(value);
    out_.effective[setting.key] = hidden ? "\"***\"" : shown(value);
    out_.origin[setting.key] = setting.origin;
    if (secret && value.text() != nullptr)
      out_.secrets.push_back({*value.text(), hidden ? "***" : value.written});
  }

  std::optional<Value> value_of(const KeyRow& row, Setting setting, Problems& problems) {
    return interpolated(setting, problems) ? coerce(row, setting, problems) : std::nullopt;
  }

  /// Interpolates a setting and collects its secrets. The content of a ${file:...} is never shown, even if
  /// its key is rejected.
  bool interpolated(Setting& setting, Problems& problems) {
    if (!interpolate_value(setting, variables_, problems)) return false;
    const auto keep = [this](const Value& v) {
      if (v.secret && v.text() != nullptr) out_.secrets.push_back({*v.text(), v.written});
    };
    keep(setting.value);
    if (const auto* list = std::get_if<Value::List>(&setting.value.data))
      for (const Value& item : *list) keep(item);
    return true;
  }

  static bool holds_secret(const Value& value) {
    const auto* list = std::get_if<Value::List>(&value.data);
    return value.secret || (list != nullptr && std::ranges::any_of(*list, &Value::secret));
  }

  /// Devices compare these texts and show differing ones, so a secret appears as a digest. The quorum is
  /// plain: folds use it as a number.
  static std::string group_text(const std::string& key, const Value& value) {
    std::string text = render(value);
    if (!holds_secret(value) || key == "checkpoint.quorum") return text;
    return "\"digest " + rivulet::digest_of(std::as_bytes(std::span(text))).hex() + "\"";
  }

  /// Warns about a readable password: a password in the file is visible to all readers of the file and its
  /// copies; a password on the command line appears in process lists.
  void warn_of_password(const Setting& setting) {
    const bool in_file = setting.place.line > 0;
    const bool typed = setting.origin == "--set";
    if ((!in_file && !typed) || setting.value.interpolated || setting.value.secret) return;
    if (!is_password_property(setting.key) || setting.value.text()->empty()) return;
    const char* where = in_file ? " is in the configuration in plain text"
                                : " is on the command line, where every process on this machine can read it";
    problems_.push_back({.file = setting.source,
                         .line = setting.place.line,
                         .column = setting.place.column,
                         .warning = true,
                         .message = setting.key + where,
                         .hint = "store it in a separate file, and set \"${file:/path/to/file}\" here"});
  }

  void properties() {
    for (const auto& [key, written] : written_) {
      if (!is_property(key)) continue;
      Setting setting = written;
      if (!interpolated(setting, problems_)) continue;
      const auto value = coerce_property(setting, problems_);
      if (!value) continue;
      setting.value = *value;
      out_.config.source.kafka_properties.emplace_back(key.substr(std::string(property_prefix).size()),
                                                       *value->text());
      note(setting);
      warn_of_password(setting);
      settings_[key] = setting;
    }
  }

  /// Returns decode.<format>.<name> of the chosen format if the key exists with this type; else an empty
  /// value.
  template <class T>
  T of_format(const std::string& name) {
    const Settings& settings = out_.config.settings;
    const std::string key = "decode." + out_.config.decode.format + "." + name;
    return settings.has<T>(key) ? settings.get<T>(key) : T{};
  }
  std::vector<double> factors(const std::string& name, double otherwise) {
    if (auto list = of_format<Settings::Numbers>(name); !list.empty()) return list;
    const Settings& settings = out_.config.settings;
    const std::string key = "decode." + out_.config.decode.format + "." + name;
    return {settings.has<double>(key) ? settings.get<double>(key) : otherwise};
  }

  void by_format() {
    auto& d = out_.config.decode;
    const std::string scale = "decode." + d.format + ".scale";
    const Settings& settings = out_.config.settings;
    d.normalize = settings.has<Settings::Numbers>(scale) && settings.get<Settings::Numbers>(scale).empty();
    d.scale = factors("scale", 1);
    d.shift = factors("shift", 0);
    d.shape = of_format<Settings::Integers>("shape");
    d.features = of_format<Settings::Texts>("features");
    d.target = of_format<std::string>("target");
    d.classes = of_format<Settings::Texts>("classes");
    d.where = of_format<std::string>("where");
    d.missing = of_format<Settings::Numbers>("missing");
    if (const auto decimal = of_format<std::string>("decimal"); !decimal.empty()) d.decimal = decimal.front();
    fill();
    classes_of_list();
  }

  /// Filling with the mean needs a normalizing model. Without one, a missing value drops its row unless
  /// `fill` is set explicitly (check_all() rejects "mean").
  void fill() {
    auto& d = out_.config.decode;
    const std::string key = "decode." + d.format + ".fill";
    d.fill = of_format<std::string>("fill");
    if (d.fill.empty() || (!d.normalize && !written_.contains(key))) d.fill = "drop";
  }

  /// Derives model.classes from a list of labels unless it is set explicitly (check_all() compares).
  void classes_of_list() {
    const auto& d = out_.config.decode;
    const std::string by = "decode." + d.format + ".classes";
    if (d.classes.empty() || written_.contains("model.classes")) return;
    if (out_.config.train.loss != "cross_entropy") return;
    Setting& count = settings_.at("model.classes");
    count.value = {static_cast<std::int64_t>(d.classes.size()), {}, false, false};
    count.origin = by;
    out_.config.model.classes = static_cast<std::uint32_t>(d.classes.size());
    note(count);
    // A device that sets the same value explicitly belongs to the same group.
    out_.group_values[count.key] = group_text(count.key, count.value);
  }

  void claims() {
    Setting topics = settings_.at("source.topics");
    auto& list = std::get<Value::List>(topics.value.data);
    // Rows without a broker still need a topic: uses the job's name.
    const bool local = out_.config.source.type != "kafka" && !out_.config.job.name.empty();
    if (list.empty() && local) list.push_back({out_.config.job.name, {}, false, false});
    const bool written = written_.contains("source.partitions");
    resolve_claims(out_.config, topics, settings_.at("source.partitions"), written, problems_);
  }

  std::vector<Problem> sorted() {
    std::stable_sort(problems_.begin(), problems_.end(), [](const Problem& a, const Problem& b) {
      if (a.warning != b.warning) return b.warning;
      if ((a.line > 0) != (b.line > 0)) return a.line > 0;
      return std::pair(a.line, a.column) < std::pair(b.line, b.column);
    });
    return std::move(problems_);
  }

  const ConfigInput& input_;
  Variables variables_;
  SettingsByKey written_;   // settings of all layers, not validated
  SettingsByKey settings_;  // every key with its final value
  std::set<std::string> failed_;
  bool readable_ = true;
  Problems problems_;
  LoadedConfig out_;
};

}  // namespace

LoadedConfig load_config(const ConfigInput& input) {
  return Loader(input).load();
}

bool LoadedConfig::usable() const {
  return std::all_of(problems.begin(), problems.end(), [](const Problem& p) { return p.warning; });
}

std::map<std::string, std::string> group_keys(const LoadedConfig& loaded) {
  std::map<std::string, std::string> keys;
  for (const auto& spec : key_table()) {
    const auto it = loaded.group_values.find(spec.key);
    if (it == loaded.group_values.end()) continue;
    const std::string& text = it->second;
    const bool quoted = text.size() >= 2 && text.front() == '"' && text.find('\\') == std::string::npos;
    keys[spec.key] = quoted ? text.substr(1, text.size() - 2) : text;
  }
  Value::List topics;
  for (const auto& topic : loaded.config.source.topics) topics.push_back({topic, {}, false, false});
  keys["source.topics"] = render({topics, {}, false, false});
  return keys;
}

std::string group_hash(const std::map<std::string, std::string>& keys) {
  std::string text =
      std::to_string(sync::membership::protocol_version) + "." + std::to_string(sync::facts_version);
  for (const auto& [key, value] : keys) text.append("\n").append(key).append("=").append(value);
  return rivulet::digest_of(std::as_bytes(std::span(text))).hex();
}

}  // namespace rivulet::runtime
