#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "core/record.h"
#include "core/result.h"
#include "devices/trainer.h"
#include "runtime/config/config.h"
#include "runtime/node/run.h"
#include "runtime/process/data_dir.h"
#include "runtime/train/worker.h"
#include "stream/decoder.h"
#include "stream/open.h"
#include "sync/membership/membership.h"

/// Functions that convert the configuration's plain values to each part's own configuration. Pure.
namespace rivulet::runtime {

/// Returns the effective inject policy. `auto` needs labels and local steps; if either is missing, its
/// measurements are skipped.
std::string transfer_policy(const Config& config);

/// Finds a model of this build by name; null if there is none.
const devices::ModelEntry* model_named(std::string_view name);

/// Whether the task is a classification, which has an accuracy. Otherwise targets are numbers, and only a
/// loss exists.
bool is_classification(const Config& config);
/// Returns the class names from decode.*, or the class numbers if none are configured.
std::vector<std::string> class_names(const Config& config);
/// Whether accuracy on held-out rows is to be measured.
bool measures_held_out(const Config& config);
stream::DecodeConfig decode_config(const Config& config);
devices::ModelConfig model_config(const Config& config, const RowShape& rows);
/// Returns the owner named in the images of this job's state. `decoder`: the decoder built from `config`.
StateOwner owner_of(const Config& config, const stream::Decoder& decoder);
/// Returns the owner of the data directory.
DataOwner data_owner_of(const Config& config);
/// Leaves the owner of the states unset, since it depends on a decoder.
WorkerConfig worker_config(const Config& config, const RunOptions& options, const RowShape& rows,
                           const devices::ModelLayout& layout);
sync::membership::MembershipConfig membership_config(const LoadedConfig& loaded, std::uint64_t nonce_seed);

/// Returns the partitions of this device, with ids equal on all devices (topics sorted by name).
std::vector<PartitionId> claimed_partitions(const Config& config);
/// Configuration of synthetic rows of the configured shape and seed; the caller sets the pace.
stream::SyntheticSourceConfig synthetic_config(const Config& config);
/// Whether the configuration names brokers.
bool has_brokers(const Config& config);
/// Parses source.start; "checkpoint" means earliest while there is no checkpoint. Errors: invalid_config.
Result<stream::StartOffset> start_offset(const Config& config);

}  // namespace rivulet::runtime
