#include "runtime/cli/rows/config_from_topic.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <numeric>
#include <span>

#include "core/check.h"
#include "core/printable.h"
#include "runtime/cli/rows/row_survey.h"
#include "runtime/cli/rows/topic_guess.h"
#include "runtime/cli/rows/topic_rows.h"
#include "runtime/cli/text.h"
#include "runtime/node/catalog.h"
#include "runtime/node/control_topic.h"
#include "runtime/node/node.h"
#include "runtime/node/node_config.h"
#include "sync/message/facts.h"

namespace rivulet::runtime::cli {
namespace {

constexpr std::string_view property_table = "source.kafka.properties.";

using Keys = std::vector<std::pair<std::string, std::string>>;

/// Replaces characters that job.name does not allow.
std::string job_name_of(const std::string& topic) {
  std::string name = topic.substr(0, 100);
  for (char& c : name)
    if (std::string_view("._-").find(c) == std::string_view::npos &&
        std::isalnum(static_cast<unsigned char>(c)) == 0)
      c = '-';
  return name;
}

/// Loads a configuration with these keys, overridden by the user's.
LoadedConfig load_with(const ConfigInput& said, const Keys& keys) {
  ConfigInput input = said;
  input.sets.clear();
  for (const auto& [key, value] : keys) input.sets.push_back(key + "=" + value);
  input.sets.insert(input.sets.end(), said.sets.begin(), said.sets.end());
  input.needs_stream = true;
  return load_config(input);
}

std::string data_dir_of(const std::string& job) {
  return "/tmp/rivulet-" + job;
}

Keys keys_of_topic(const std::string& topic, const std::string& job, int partitions) {
  std::vector<int> mine(static_cast<std::size_t>(std::min<int>(partitions, sync::facts_partitions_max)));
  std::iota(mine.begin(), mine.end(), 0);
  return {{"job.name", toml_string(job)},
          {"job.devices", "1"},
          {"device.data_dir", toml_string(data_dir_of(job))},
          {"source.topics", toml_list({topic})},
          {"source.partitions", fmt::format("[{}]", fmt::join(mine, ", "))}};
}

/// Parses "[1, 28, 28]"; returns an empty list if there is no shape.
std::vector<std::int64_t> shape_in(const std::string& list) {
  std::vector<std::int64_t> shape;
  for (const char* at = list.data(); at != list.data() + list.size();) {
    std::int64_t axis = 0;
    const auto [end, error] = std::from_chars(at, list.data() + list.size(), axis);
    if (error == std::errc()) shape.push_back(axis);
    at = error == std::errc() ? end : at + 1;
  }
  return shape;
}

/// Returns this build's best model for rows of this shape.
const devices::ModelEntry& model_for(std::span<const std::int64_t> shape) {
  const devices::ModelEntry* best = nullptr;
  int most = 0;
  for (const devices::ModelEntry* entry : devices::builtin_models()) {
    const int suits = entry->suits != nullptr ? entry->suits(shape) : 0;
    if (suits > most) best = entry;
    most = std::max(most, suits);
  }
  RIVULET_CHECK(best != nullptr, "some model suits any rows");
  return *best;
}

/// For models with few elements per row: small Adam steps learn from each row (bench/streams).
Keys training_keys(const devices::ModelEntry& model) {
  Keys keys;
  if (model.small_steps)
    keys = {{"train.optimizer.name", toml_string(std::string(optimizer_of_small_steps))},
            {"train.optimizer.lr", "0.01"},
            {"batch.max", "16"}};
  for (const auto& [key, value] : model.proposed) keys.emplace_back(key, value);
  return keys;
}

std::string value_in(const Keys& keys, const std::string& key) {
  const auto at = std::find_if(keys.begin(), keys.end(), [&](const auto& k) { return k.first == key; });
  return at == keys.end() ? "" : at->second;
}

void set_scale(Keys& keys, const std::string& format, const std::string& scale, const std::string& shift) {
  keys.emplace_back("decode." + format + ".scale", scale);
  keys.emplace_back("decode." + format + ".shift", shift);
}

Result<RowSurvey> survey_of(const Config& config, const std::vector<std::string>& records) {
  const auto decoder = build_decoder(config, builtin_catalog());
  if (!decoder) return decoder.error();
  decoder.value()->watch_narrowing(true);
  RowSurvey survey(config, *decoder.value());
  for (const auto& record : records)
    survey_record(*decoder.value(), {.value = std::as_bytes(std::span(record))}, survey);
  survey.take_narrowing(*decoder.value());
  if (survey.rows() == 0)
    return Error{ErrorCode::unavailable,
                 "no row could be decoded; most frequent reason: " + survey.worst_drop()};
  return survey;
}

/// Adds keys that bring features near mean 0 and deviation 1. Scale stays "auto" (adaptive) where the format
/// supports it; a shift then preserves digits that narrowing to 32 bits would lose. Raw rows get constants
/// for both.
void add_scale(Keys& keys, const Keys& unscaled, const Config& plain, const RowSurvey& survey,
               const Guess& guess, std::vector<std::string>& notes) {
  if (const auto shifts = survey.shifts(); !shifts.empty()) {
    set_scale(keys, guess.format, "\"auto\"", toml_of(shifts));
    notes.insert(notes.end(), survey.narrowing().begin(), survey.narrowing().end());
    return;
  }
  if (guess.format != "raw") return;
  Config::Decode as_they_are = plain.decode;
  as_they_are.normalize = false;
  const auto better = survey.ranges().advice(as_they_are);
  if (better)
    set_scale(keys, guess.format, toml_of(better->scale), toml_of(better->shift));
  else
    keys = unscaled;
}

Error first_error(const LoadedConfig& loaded) {
  const auto wrong = std::find_if(loaded.problems.begin(), loaded.problems.end(),
                                  [](const Problem& p) { return !p.warning; });
  return {ErrorCode::invalid_config, wrong == loaded.problems.end() ? "" : wrong->message};
}

std::string table_of(const std::string& key) {
  if (key.starts_with(property_table))
    return std::string(property_table.substr(0, property_table.size() - 1));
  const auto first = key.find('.');
  const bool format = key.starts_with("decode.") && key.find('.', first + 1) != std::string::npos;
  return key.substr(0, format ? key.find('.', first + 1) : first);
}

/// Renders all keys with non-default values, by table.
std::string render_file(const LoadedConfig& loaded, const std::vector<std::string>& notes) {
  std::vector<std::pair<std::string, std::string>> tables;
  const auto add = [&](const std::string& key) {
    const auto origin = loaded.origin.find(key);
    if (origin == loaded.origin.end() || origin->second == "default" || origin->second.starts_with("decode."))
      return;
    const std::string table = table_of(key);
    auto at = std::find_if(tables.begin(), tables.end(), [&](const auto& t) { return t.first == table; });
    if (at == tables.end()) at = tables.insert(tables.end(), {table, ""});
    const std::string& value = loaded.effective.at(key);
    const bool hidden = value == "\"***\"";
    at->second += fmt::format("{}{} = {}\n", hidden ? "# write \"${file:/path}\" instead: " : "",
                              key.substr(table.size() + 1), value);
  };
  for (const auto& spec : key_table())
    if (spec.key != "version") add(spec.key);
  for (const auto& [key, value] : loaded.effective)
    if (key.starts_with(property_table)) add(key);
  std::string text = "# Guessed from the newest records of a topic. All keys: rivulet config init\n";
  // Field names are external input.
  for (const auto& note : notes) text += "# " + printable(note) + "\n";
  text += "version = 1\n";
  for (const auto& [table, lines] : tables) text += "\n[" + table + "]\n" + lines;
  return text;
}

Result<std::vector<std::string>> read_records(const TopicReading& reading, const StopRequest& stop) {
  constexpr std::size_t most_bytes = std::size_t{64} << 20U;
  std::vector<std::string> records;
  std::size_t bytes = 0;
  const auto read = read_topic(reading, stop, [&](const Record& record) {
    if (!record.tombstone)
      records.emplace_back(reinterpret_cast<const char*>(record.value.data()), record.value.size());
    bytes += record.value.size();
    return records.size() < reading.records && bytes < most_bytes;
  });
  if (!read) return read.error();
  return records;
}

}  // namespace

std::string free_job_name(const std::string& topic, const JobNames& names) {
  const std::string stem = job_name_of(topic);
  const auto is_job = [&](const std::string& name) {
    return std::ranges::find(names.jobs, name) != names.jobs.end();
  };
  const std::string waiting = !is_job(stem) && names.jobs.size() == 1 ? names.jobs.front() : stem;
  if (is_job(waiting) && !names.is_taken(waiting) && names.is_new(waiting)) return waiting;
  for (int number = 1;; ++number) {
    std::string name = fmt::format("{}-{}", stem, number);
    if (!is_job(name) && !names.is_taken(name)) return name;
  }
}

Result<TopicConfig> config_from_records(const ConfigInput& brokers, const std::string& topic,
                                        const std::string& job, const std::string& target, int partitions,
                                        const std::vector<std::string>& records) {
  const auto guess = guess_rows(records, target);
  if (!guess) return guess.error();
  auto notes = guess.value().notes;
  Keys keys = keys_of_topic(topic, job, partitions);
  keys.insert(keys.end(), guess.value().keys.begin(), guess.value().keys.end());
  keys.emplace_back("model.name",
                    toml_string(std::string(model_for(shape_in(value_in(keys, "decode.raw.shape"))).name)));
  // Survey the unscaled values.
  const bool raw = guess.value().format == "raw";
  Keys unscaled = keys;
  set_scale(unscaled, guess.value().format, raw ? "1.0" : "\"auto\"", "0.0");
  const auto plain = load_with(brokers, unscaled);
  if (!plain.usable()) return first_error(plain);
  const auto seen = survey_of(plain.config, records);
  if (!seen) return seen.error();
  const auto& survey = seen.value();
  add_scale(keys, unscaled, plain.config, survey, guess.value(), notes);
  std::ranges::move(training_keys(*model_named(plain.config.model.name)), std::back_inserter(keys));
  const auto loaded = load_with(brokers, keys);
  if (!loaded.usable()) return first_error(loaded);
  if (const auto largest = survey.labels().largest(); !largest.empty()) notes.push_back("labels: " + largest);
  if (const auto drop = survey.worst_drop(); !drop.empty())
    notes.push_back(fmt::format("dropped {} of {} rows, most frequent reason: {}", survey.dropped(),
                                survey.dropped() + survey.rows(), drop));
  if (partitions > 1)
    notes.push_back(
        fmt::format("this device reads all {} partitions; with more devices, divide them by "
                    "source.partitions",
                    partitions));
  notes.emplace_back(
      "not guessed: job.devices, location of device.data_dir, held-out rows (evaluate.held_out)");
  return TopicConfig{render_file(loaded, notes), notes};
}

Result<TopicConfig> config_from_topic(const ConfigInput& brokers, const std::string& topic,
                                      const std::string& target, std::uint64_t rows,
                                      const StopRequest& stop) {
  const auto connection = load_with(brokers, keys_of_topic(topic, job_name_of(topic), 1));
  const auto& properties = connection.config.source.kafka_properties;
  if (!has_brokers(connection.config))
    return Error{ErrorCode::usage, "--brokers HOST:PORT is required to read the topic"};
  const auto partitions = partitions_in(properties, topic);
  if (!partitions) return partitions.error();
  TopicReading reading{properties, topic, {}, {}, {stream::StartOffset::Kind::latest, 0}, rows};
  for (int p = 0; p < partitions.value(); ++p) reading.partitions.push_back(p);
  const auto records = read_records(reading, stop);
  if (!records) return records.error();
  if (records.value().empty())
    return Error{ErrorCode::unavailable, fmt::format("topic {} has no records yet", topic)};
  const auto topics = stream::list_topics(properties, std::chrono::seconds(5));
  if (!topics) return topics.error();
  const auto is_new = [&](const std::string& name) {
    const auto log = read_records({properties, ControlTopic::name_of(name), {}, {0}, {}, 1}, stop);
    return log && log.value().empty();
  };
  const auto is_taken = [](const std::string& name) {
    std::error_code error;
    return std::filesystem::exists(data_dir_of(name), error);
  };
  const auto job = free_job_name(topic, {stream::jobs_among(topics.value()), is_new, is_taken});
  return config_from_records(brokers, topic, job, target, partitions.value(), records.value());
}

}  // namespace rivulet::runtime::cli
