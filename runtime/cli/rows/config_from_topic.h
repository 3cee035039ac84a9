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

/// `rivulet config init --from-topic`: a configuration for what lies in a topic.
namespace rivulet::runtime::cli {

struct TopicConfig {
  std::string text;                ///< the file
  std::vector<std::string> notes;  ///< what was guessed and what was not, for a person
};

/// `brokers`: --brokers, --set and the like; they win over what is guessed. Reads the newest `rows`
/// records of all partitions. Errors: unavailable (broker, topic, no records, nothing to guess from),
/// invalid_config (the brokers).
Result<TopicConfig> config_from_topic(const ConfigInput& brokers, const std::string& topic,
                                      const std::string& target, std::uint64_t rows, const StopRequest& stop);

/// The same of records that were read: `partitions` of them in the topic. `job`: its name. Pure but for
/// ${...}.
Result<TopicConfig> config_from_records(const ConfigInput& brokers, const std::string& topic,
                                        const std::string& job, const std::string& target, int partitions,
                                        const std::vector<std::string>& records);

/// What is known of names of jobs.
struct JobNames {
  std::vector<std::string> jobs;                     ///< that have a control topic
  std::function<bool(const std::string&)> is_new;    ///< one of these: nobody has written into it yet
  std::function<bool(const std::string&)> is_taken;  ///< its folder is there
};
/// The job whose control topic waits for its first device, as `rivulet broker --job` makes one: that of the
/// topic's name, or the only one. Else "readings-1" of topic "readings", or the next number that is neither a
/// job's nor taken: a job that is there already would be joined, or its folder found full.
std::string free_job_name(const std::string& topic, const JobNames& names);

}  // namespace rivulet::runtime::cli
