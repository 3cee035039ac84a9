#include "runtime/config/claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>

namespace rivulet::runtime {

namespace {

constexpr int partition_max = 999'999;

bool parse_partition(std::string_view text, int& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out >= 0 && out <= partition_max;
}

/// Parses "0-3", "1,2", "0-1,7". False if malformed.
bool parse_partitions(std::string_view text, std::vector<int>& out) {
  while (true) {
    const auto comma = text.find(',');
    const std::string_view item = text.substr(0, comma);
    const auto dash = item.find('-');
    int first = 0;
    int last = 0;
    if (!parse_partition(item.substr(0, dash), first)) return false;
    if (!parse_partition(dash == std::string_view::npos ? item : item.substr(dash + 1), last)) return false;
    if (last < first) return false;
    for (int p = first; p <= last; ++p) out.push_back(p);
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

/// Whether a broker accepts this as a topic name.
bool is_topic(const std::string& name) {
  constexpr auto allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  return !name.empty() && name.size() <= 249 && name != "." && name != ".." &&
         name.find_first_not_of(allowed) == std::string::npos;
}

class Resolver {
 public:
  Resolver(Config& config, Problems& problems) : source_(config.source), problems_(problems) {}

  void topics(const Setting& setting) {
    for (const auto& item : std::get<Value::List>(setting.value.data)) {
      const std::string& text = *item.text();
      const std::string name = text.substr(0, text.find(':'));
      if (!is_topic(name)) {
        problem(setting, item,
                "'source.topics': '" + shown_text(item, name) +
                    "' is not a topic name (1 to 249 letters, digits, '.', '_' or '-')");
      } else if (!names_.insert(name).second) {
        problem(setting, item, "'source.topics' names " + shown_text(item, name) + " twice");
      } else {
        source_.topics.push_back(name);
        if (text.size() > name.size()) claim(setting, item, name, text.substr(name.size() + 1));
      }
    }
  }

  void partitions(const Setting& setting) {
    const std::string first = source_.topics.empty() ? "" : source_.topics.front();
    source_.partitions.clear();
    for (const auto& item : std::get<Value::List>(setting.value.data)) {
      const std::string text = item.text() != nullptr ? *item.text() : render(item);
      const auto colon = text.find(':');
      const std::string topic = colon == std::string::npos ? first : text.substr(0, colon);
      if (colon != std::string::npos && !names_.contains(topic)) {
        problem(setting, item,
                fmt::format("'source.partitions' claims {}, but {} is not in source.topics",
                            shown_text(item, text), shown_text(item, topic)));
      } else {
        claim(setting, item, topic, colon == std::string::npos ? text : text.substr(colon + 1));
      }
    }
  }

  /// Sorts topics and claims, so that every device has the same order.
  void finish(bool has_first, const std::string& first) {
    std::sort(source_.topics.begin(), source_.topics.end());
    source_.claims.assign(claims_.begin(), claims_.end());
    source_.partitions.clear();
    for (const auto& [topic, partition] : claims_) {
      if (has_first && topic == first) source_.partitions.push_back(partition);
    }
  }

 private:
  void problem(const Setting& setting, const Value& item, std::string message) {
    Setting at = setting;
    if (item.place.line > 0) at.place = item.place;
    report_error(problems_, at, std::move(message));
  }

  void claim(const Setting& setting, const Value& item, const std::string& topic, const std::string& ranges) {
    std::vector<int> numbers;
    if (!parse_partitions(ranges, numbers)) {
      problem(setting, item,
              "'" + setting.key + "': '" + shown_text(item, ranges) +
                  "' is not a partition, a range such as 0-3 or a list such as 1,2");
      return;
    }
    for (const int number : numbers) claims_.insert({topic, number});
  }

  Config::Source& source_;
  Problems& problems_;
  std::set<std::string> names_;
  std::set<std::pair<std::string, int>> claims_;
};

bool claims_in_topics(const Setting& topics) {
  const auto& list = std::get<Value::List>(topics.value.data);
  return std::any_of(list.begin(), list.end(),
                     [](const Value& v) { return v.text()->find(':') != std::string::npos; });
}

}  // namespace

void resolve_claims(Config& config, const Setting& topics, const Setting& partitions, bool partitions_written,
                    Problems& problems) {
  Resolver resolver(config, problems);
  config.source.topics.clear();
  resolver.topics(topics);
  const bool has_first = !config.source.topics.empty();
  const std::string first = has_first ? config.source.topics.front() : "";
  if (has_first && (partitions_written || !claims_in_topics(topics))) resolver.partitions(partitions);
  resolver.finish(has_first, first);
}

}  // namespace rivulet::runtime
