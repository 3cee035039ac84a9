#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/config/config.h"
#include "runtime/status/node_status.h"

namespace rivulet::runtime::cli {

enum class CheckLevel : std::uint8_t { ok, warn, fail };

/// One line of doctor or of validate --environment.
struct Check {
  std::string name;
  CheckLevel level = CheckLevel::ok;
  std::string value;
  std::string hint;  ///< what to do; empty for ok
};

/// A failed check of a configuration that `rivulet validate` refuses as well.
Check invalid_configuration(std::string name, const Error& error);

/// "ok    memory     3.1 GB free", with the hint below.
std::string render_check(const Check& check, bool colour);
/// One JSON array of objects.
std::string checks_to_json(const std::vector<Check>& checks);

// Versions in this process.
std::vector<Check> version_checks();
/// Checks that this process contains exactly one copy of Gloo, if built with LibTorch.
Check gloo_check();
// Properties of this machine.
std::vector<Check> machine_checks();
/// Checks that device.data_dir exists or can be created, is writable, and belongs to no other device.
Check data_dir_check(const Config& config);
/// Checks that the address is free to listen on. Passes for "off".
Check port_check(const std::string& listen);
/// Checks that http.token_file, if set, contains a token.
Check token_check(const Config& config);
/// Checks that the device of device.type is available.
Check device_check(const Config& config);
/// Checks that the processor has instructions for the format in model.autocast: without them a step takes
/// several times as long (docs/RESULTS.md). Empty for "off", on a GPU, and if the device cannot be made,
/// which device_check() reports. Constructs the device. `processor`: CPU flags as in /proc/cpuinfo.
std::vector<Check> autocast_checks(const Config& config, const std::string& processor);
/// CPU flags of this machine; empty if unknown.
std::string processor_flags();
/// Compares device.memory with the memory that the configuration needs. Builds the model if it may fit.
Check memory_check(const Config& config);
/// What the largest size of the group (job.devices) costs a device: bytes of facts per synchronization,
/// connections, memory. A warning above the size that is tested. Empty for other groups of fixed size. Builds
/// the model.
std::vector<Check> size_checks(const Config& config);
/// Checks that the broker answers, topics and claimed partitions exist, and the user has the rights that a
/// device needs: read and commit; read, write and, if missing, create the control topic. Changes nothing.
/// Waits no more than a few seconds per request.
std::vector<Check> broker_checks(const Config& config);
/// Decodes the newest rows of the claimed partitions. Reports the majority share and dropped rows. For a
/// group that learns classes, also checks that a topic's partitions have similar labels. Empty unless the
/// source is a topic. Call only if the brokers answer; reads for several seconds.
std::vector<Check> row_checks(const Config& config);
/// Checks that every partition of the job's topics is claimed, by this device or by another member of the
/// last view in the control topic. Empty unless the source is a topic.
std::vector<Check> claim_checks(const Config& config);
/// The pure part of claim_checks(). `others`: claims of other members, such as "mnist:1"; nullopt if there is
/// no view yet.
Check judge_claims(const Config& config, const std::vector<TopicStatus>& topics,
                   const std::optional<std::vector<std::string>>& others);
/// Checks that peers can reach sync.bind. Empty for a group of one.
std::vector<Check> peer_checks(const Config& config);

}  // namespace rivulet::runtime::cli
