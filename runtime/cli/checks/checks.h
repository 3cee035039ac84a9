#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/config/config.h"
#include "runtime/status/node_status.h"

namespace rivulet::runtime::cli {

enum class CheckLevel : std::uint8_t { ok, warn, fail };

/// One line of doctor, or of validate --environment.
struct Check {
  std::string name;
  CheckLevel level = CheckLevel::ok;
  std::string value;
  std::string hint;  ///< what to do about it; empty for ok
};

/// "ok    memory     3.1 GB free" and the hint below.
std::string render_check(const Check& check, bool colour);
/// One JSON array of objects.
std::string checks_to_json(const std::vector<Check>& checks);

// What this process is made of.
std::vector<Check> version_checks();
/// Copies of Gloo in this process: exactly one with LibTorch.
Check gloo_check();
// What this machine is.
std::vector<Check> machine_checks();
/// device.data_dir exists or can be made, can be written to, and belongs to nobody else.
Check data_dir_check(const Config& config);
/// The address can be listened on now. "off" is fine.
Check port_check(const std::string& listen);
/// http.token_file, if there is one, holds a token.
Check token_check(const Config& config);
/// Whether what device.type asks for is there.
Check device_check(const Config& config);
/// Whether the processor computes in the format that model.autocast asks for: without instructions for it a
/// step takes several times as long (docs/RESULTS.md). Nothing for "off", or where no processor computes: on
/// a GPU, or where the device cannot be made, which device_check() reports. Makes the device.
/// `processor`: its flags, as /proc/cpuinfo has them.
std::vector<Check> autocast_checks(const Config& config, const std::string& processor);
/// Of this machine; empty if it does not report them.
std::string processor_flags();
/// device.memory and the sum of what this configuration needs. Makes the model, if it may fit.
Check memory_check(const Config& config);
/// The broker answers, topics and the claimed partitions exist, and the user has the rights that a device
/// needs: to read and commit, to read and write the control topic or, where it is not there, to create it.
/// Nothing is changed. Waits for the broker, a few seconds for each question at most.
std::vector<Check> broker_checks(const Config& config);
/// What the decoder makes of the newest rows of the claimed partitions: the share of the largest class, and
/// whether rows are dropped; and whether all partitions of a topic hold about the same labels, where a group
/// of several devices learns classes. Nothing if they come from no broker. For brokers that answer; reads for
/// some seconds.
std::vector<Check> row_checks(const Config& config);
/// Whether every partition of the job's topics is claimed by a device: by this one, or by another member of
/// the group's last view, as the control topic has it. Nothing where the source is not a topic.
std::vector<Check> claim_checks(const Config& config);
/// The same of what is known. `others`: "mnist:1" that other members claim; nothing: there was no view yet.
Check judge_claims(const Config& config, const std::vector<TopicStatus>& topics,
                   const std::optional<std::vector<std::string>>& others);
/// Can peers be met at sync.bind? Nothing for a group of one.
std::vector<Check> peer_checks(const Config& config);

}  // namespace rivulet::runtime::cli
