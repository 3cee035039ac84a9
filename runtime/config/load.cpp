#include <algorithm>
#include <array>
#include <cstdlib>
#include <set>

#include "core/digest.h"
#include "runtime/config/check.h"
#include "runtime/config/claims.h"
#include "runtime/config/coerce.h"
#include "runtime/config/key_rows.h"
#include "runtime/config/layers.h"
#include "runtime/config/secrets.h"
#include "sync/facts.h"
#include "sync/membership/records.h"

namespace rivulet::runtime {

namespace {

Variables variables_of(const ConfigInput& input) {
  if (input.variable) return input.variable;
  return [environment = input.environment](const std::string& name) -> std::optional<std::string> {
    if (const auto it = environment.find(name); it != environment.end()) return it->second;
    const char* value = std::getenv(name.c_str());  // NOLINT(concurrency-mt-unsafe): before any thread
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

/// Is the value of this property a secret itself, and not the place of one or something about one?
bool is_password_property(const std::string& key) {
  constexpr std::array ends{"password", "secret", "ssl.key.pem", "oauthbearer.config"};
  return is_property(key) &&
         std::any_of(ends.begin(), ends.end(), [&](const char* end) { return key.ends_with(end); });
}

/// A name that is none of the usual ones can be a slip of one that holds a secret ("sasl.pasword"): what a
/// variable put there is not shown either, unless it is a number or a yes or no.
bool may_be_misspelt_secret(const Setting& setting) {
  const std::string* text = setting.value.text();
  if (!is_property(setting.key) || !setting.value.interpolated || text == nullptr) return false;
  constexpr std::array plain{"bootstrap.servers", "client.id",       "group.id",      "security.protocol",
                             "sasl.mechanism",    "sasl.mechanisms", "sasl.username", "location"};
  const bool known =
      std::any_of(plain.begin(), plain.end(), [&](const char* end) { return setting.key.ends_with(end); });
  const bool number = text->find_first_not_of("0123456789.") == std::string::npos;
  return !known && !number && *text != "true" && *text != "false";
}

/// The whole of one load; each step works on what the one before left.
class Loader {
 public:
  explicit Loader(const ConfigInput& input) : input_(input), variables_(variables_of(input)) {}

  LoadedConfig load() {
    gather();
    keys();
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
    // Nothing is missing from a file that could not be read: only that is said.
    readable_ = problems_.empty() || !written_.empty();
    add_environment(input_.environment, written_, problems_);
    add_sets(input_.sets, written_, problems_);
    add_flags(input_.flags, written_, problems_);
  }

  void keys() {
    for (const auto& row : key_rows()) {
      const std::string& key = row.spec.key;
      const Setting standard{key, value_of_text(row.spec.type, row.spec.text), {}, input_.file, "default"};
      const auto it = written_.find(key);
      Setting setting = it == written_.end() ? standard : it->second;
      auto value = coerce(row, setting, variables_, problems_);
      if (!value) {
        failed_.insert(key);
        Problems ignored;
        setting = standard;
        value = coerce(row, setting, variables_, ignored);
      }
      if (!value) continue;
      setting.value = *value;
      if (row.set != nullptr) row.set(out_.config, *value);
      // What only later versions listen to is shown when somebody wrote it.
      if (row.spec.since.empty() || it != written_.end()) note(setting, render(*value));
      settings_[key] = setting;
    }
  }

  void note(const Setting& setting, const std::string& shown) {
    const bool secret = setting.value.secret || is_secret_property(setting.key);
    out_.effective[setting.key] = secret || may_be_misspelt_secret(setting) ? "\"***\"" : shown;
    out_.origin[setting.key] = setting.origin;
    if (secret && setting.value.text() != nullptr) out_.secrets.push_back(*setting.value.text());
  }

  /// A password in the file is read by whoever reads the file, and is in every copy of it; one on the
  /// command line is in every list of processes.
  void warn_of_password(const Setting& setting) {
    const bool in_file = setting.place.line > 0;
    const bool typed = setting.origin == "--set";
    if ((!in_file && !typed) || setting.value.interpolated || setting.value.secret) return;
    if (!is_password_property(setting.key) || setting.value.text()->empty()) return;
    const char* where = in_file ? " stands in the configuration in the clear"
                                : " stands on the command line, which every process here can read";
    problems_.push_back({.file = setting.source,
                         .line = setting.place.line,
                         .column = setting.place.column,
                         .warning = true,
                         .message = setting.key + where,
                         .hint = "write it into a file of its own and \"${file:/path/to/it}\" here"});
  }

  void properties() {
    for (const auto& [key, written] : written_) {
      if (!is_property(key)) continue;
      const auto value = coerce_property(written, variables_, problems_);
      if (!value) continue;
      Setting setting = written;
      setting.value = *value;
      out_.config.source.kafka_properties.emplace_back(key.substr(std::string(property_prefix).size()),
                                                       *value->text());
      note(setting, render(*value));
      warn_of_password(setting);
      settings_[key] = setting;
    }
  }

  /// The value of decode.<format>.<name>, or of decode.raw for a format that has no keys of its own.
  const Value& of_format(const std::string& name) {
    const std::string& format = out_.config.decode.format;
    const auto it = settings_.find("decode." + format + "." + name);
    return it != settings_.end() ? it->second.value : settings_.at("decode.raw." + name).value;
  }

  void by_format() {
    auto& d = out_.config.decode;
    d.scale = numbers(of_format("scale"));
    d.shift = numbers(of_format("shift"));
    d.shape = integers(of_format("shape"));
    d.csv_columns = texts(settings_.at("decode.csv.columns").value);
    d.csv_delimiter = *settings_.at("decode.csv.delimiter").value.text();
    out_.config.model.hidden = integers(settings_.at("model.mlp.hidden").value);
    if (d.format != "json" && d.format != "csv") return;
    d.features = texts(of_format("features"));
    d.target = *of_format("target").text();
  }

  static std::vector<std::int64_t> integers(const Value& value) {
    std::vector<std::int64_t> out;
    for (const auto& item : std::get<Value::List>(value.data))
      out.push_back(std::get<std::int64_t>(item.data));
    return out;
  }
  /// Of a number, too.
  static std::vector<double> numbers(const Value& value) {
    const auto* list = std::get_if<Value::List>(&value.data);
    if (list == nullptr) return {std::get<double>(value.data)};
    std::vector<double> out;
    for (const auto& item : *list) out.push_back(std::get<double>(item.data));
    return out;
  }
  static std::vector<std::string> texts(const Value& value) {
    std::vector<std::string> out;
    for (const auto& item : std::get<Value::List>(value.data)) out.push_back(*item.text());
    return out;
  }

  void claims() {
    Setting topics = settings_.at("source.topics");
    auto& list = std::get<Value::List>(topics.value.data);
    // Rows that come from no broker still belong to a topic: the job's name will do.
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
  Settings written_;   // what the layers say, not yet judged
  Settings settings_;  // every key with its final value
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
    const auto it = loaded.effective.find(spec.key);
    if (!spec.group || it == loaded.effective.end()) continue;
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
  return digest_of(std::as_bytes(std::span(text))).hex();
}

}  // namespace rivulet::runtime
