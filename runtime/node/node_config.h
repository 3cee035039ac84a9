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

/// From the configuration's plain values to each part's own. Pure; the only place that knows both sides.
namespace rivulet::runtime {

/// Policy `auto` of inject goes by labels, and where devices step on their own: where there is neither,
/// nobody measures for it.
std::string transfer_policy(const Config& config);

/// Of this build; null: no model has this name.
const devices::ModelEntry* model_named(std::string_view name);

/// Rows have classes, so that an accuracy can be measured; else numbers, and there is a loss alone.
bool is_classification(const Config& config);
/// A name for each class: decode's, or its number.
std::vector<std::string> class_names(const Config& config);
/// There are held-out rows whose accuracy is to be measured.
bool measures_held_out(const Config& config);
stream::DecodeConfig decode_config(const Config& config);
devices::ModelConfig model_config(const Config& config, const RowShape& rows);
/// The owner that the images of this job's state name. `decoder`: of this configuration.
StateOwner owner_of(const Config& config, const stream::Decoder& decoder);
/// Whose its data directory is.
DataOwner data_owner_of(const Config& config);
/// Without the owner of the states, which takes a decoder.
WorkerConfig worker_config(const Config& config, const RunOptions& options, const RowShape& rows,
                           const devices::ModelLayout& layout);
sync::membership::MembershipConfig membership_config(const LoadedConfig& loaded, std::uint64_t nonce_seed);

/// The job's partitions of this device, with ids that are equal on all devices (topics sorted by name).
std::vector<PartitionId> claimed_partitions(const Config& config);
/// Made-up rows of the configured shape and seed; the pace is left to the caller.
stream::SyntheticSourceConfig synthetic_config(const Config& config);
/// The configuration names brokers to ask.
bool has_brokers(const Config& config);
/// source.start; "checkpoint" means earliest as long as there is no checkpoint. Errors: invalid_config.
Result<stream::StartOffset> start_offset(const Config& config);

}  // namespace rivulet::runtime
