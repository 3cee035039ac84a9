#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "runtime/cli/command.h"
#include "runtime/config/config.h"
#include "runtime/process/signals.h"

/// `rivulet config init --from-topic`: a configuration derived from a topic's records.
namespace rivulet::runtime::cli {

struct TopicConfig {
  std::string text;                ///< content of the file
  std::vector<std::string> notes;  ///< notes for the user on guessed and missing keys
};

/// `brokers`: --brokers, --set and similar input; takes precedence over guesses. Reads the newest `rows`
/// records of all partitions. Errors: unavailable (broker, topic, no records, no guess possible),
/// invalid_config (the brokers).
Result<TopicConfig> config_from_topic(const ConfigInput& brokers, const std::string& topic,
                                      const std::string& target, std::uint64_t rows, const StopRequest& stop);

/// The same for records that were read before. `partitions`: number of partitions of the topic; `job`: name
/// of the job. Pure except for ${...}.
Result<TopicConfig> config_from_records(const ConfigInput& brokers, const std::string& topic,
                                        const std::string& job, const std::string& target, int partitions,
                                        const std::vector<std::string>& records);

/// Existing jobs and data directories.
struct JobNames {
  std::vector<std::string> jobs;                     ///< jobs with a control topic
  std::function<bool(const std::string&)> is_new;    ///< True if the job's control topic is empty
  std::function<bool(const std::string&)> is_taken;  ///< True if the job's data directory exists
};
/// Chooses a job name. Prefers a job whose control topic is still empty, as made by `rivulet broker --job`:
/// the one named like the topic, or the only one. Otherwise "readings-1" for topic "readings", with the first
/// number that is free: the device must not join another job or find a used data directory.
std::string free_job_name(const std::string& topic, const JobNames& names);

}  // namespace rivulet::runtime::cli
