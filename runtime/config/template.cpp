#include <fmt/format.h>

#include <algorithm>

#include "runtime/config/key_rows.h"

namespace rivulet::runtime {

namespace {

constexpr const char* head = R"(# The configuration of one device of a Rivulet job.
# Later sources override this file: RIVULET_SET_<TABLE>__<KEY>, then --set table.key=value, then options.
# Strings may contain ${VAR}, ${VAR:-default} and ${file:/run/secrets/name}.
# Keys marked (group) must be equal on all devices of the job.
)";

constexpr const char* properties = R"(
[source.kafka.properties]                        # passed to librdkafka unchanged
bootstrap.servers = "localhost:9092"
)";

std::string table_of(const std::string& key) {
  return key.find('.') == std::string::npos ? "" : key.substr(0, key.find('.'));
}

/// "train.optimizer" for train.optimizer.lr, empty for train.loss.
std::string inner_table_of(const std::string& key) {
  const auto first = key.find('.');
  const auto last = key.rfind('.');
  return first == last ? "" : key.substr(0, last);
}

bool commented(const KeySpec& spec) {
  return spec.sample.starts_with('#');
}

std::string value_of(const KeySpec& spec) {
  if (spec.sample.empty()) return spec.text;
  return commented(spec) ? spec.sample.substr(1) : spec.sample;
}

std::string line(const std::string& text, const std::string& help, bool group) {
  const std::string note = help + (group ? (help.empty() ? "(group)" : " (group)") : "");
  return note.empty() ? text + "\n" : fmt::format("{:<48} # {}\n", text, note);
}

std::string name_in(const KeySpec& spec, const std::string& table) {
  return table.empty() ? spec.key : spec.key.substr(table.size() + 1);
}

/// Joins notes by "; " into comment lines of at most 110 characters.
std::string comment_lines(const std::vector<std::string>& notes) {
  std::string text;
  std::string now = "#";
  for (const auto& note : notes) {
    const bool fits = now.size() + note.size() < 110;
    if (!fits) text += now + "\n";
    if (!fits) now = "#";
    now += " " + note;
  }
  return text + now + "\n";
}

/// Renders an inner table as one line: optimizer = { name = "sgd", lr = 0.05 }.
std::string inner_line(const std::vector<const KeySpec*>& specs, const std::string& inner) {
  const bool comment =
      std::all_of(specs.begin(), specs.end(), [](const KeySpec* s) { return commented(*s); });
  std::string values;
  std::vector<std::string> notes;
  for (const auto* spec : specs) {
    if (commented(*spec) && (!comment || value_of(*spec) == "[]")) continue;
    values += (values.empty() ? "" : ", ") + name_in(*spec, inner) + " = " + value_of(*spec);
    if (!spec->help.empty()) notes.push_back(name_in(*spec, inner) + ": " + spec->help + ";");
  }
  if (!notes.empty()) notes.back().pop_back();
  if (specs.front()->group) notes.emplace_back("(group)");
  const std::string name = inner.substr(inner.find('.') + 1);
  return comment_lines(notes) + (comment ? "# " : "") + name + " = { " + values + " }\n";
}

}  // namespace

std::string config_template() {
  std::string text = head;
  std::string table;
  std::string inner;
  std::vector<const KeySpec*> waiting;
  const auto flush = [&] {
    if (!waiting.empty()) text += inner_line(waiting, inner);
    waiting.clear();
  };
  for (const auto& spec : key_table()) {
    if (!spec.since.empty() || find_row(inner_table_of(spec.key)) != nullptr) continue;
    const std::string now_inner = inner_table_of(spec.key);
    if (now_inner != inner) flush();
    inner = now_inner;
    if (const std::string now = table_of(spec.key); now != table) {
      flush();
      if (table == "source") text += properties;
      text += "\n[" + now + "]\n";
      table = now;
    }
    if (!inner.empty()) {
      waiting.push_back(&spec);
    } else {
      const std::string key = (commented(spec) ? "# " : "") + name_in(spec, table) + " = " + value_of(spec);
      text += line(key, spec.help, spec.group);
    }
  }
  flush();
  return text;
}

}  // namespace rivulet::runtime
