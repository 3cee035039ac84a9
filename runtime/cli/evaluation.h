#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/digest.h"
#include "core/record.h"
#include "core/result.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/cli/scores.h"
#include "runtime/config/config.h"
#include "runtime/state/agreed_state.h"
#include "runtime/state/exported_model.h"

namespace rivulet::runtime::cli {

/// Scores of the model in a final state.
struct Evaluation {
  Digest digest;  ///< recomputed from the state
  std::size_t parameters = 0;
  std::uint64_t rows = 0;
  double loss = 0;       ///< mean over all rows
  DropCounts dropped{};  ///< undecodable rows
  std::variant<RegressionScores, ClassScores> scores;

  /// nullopt for a regression.
  [[nodiscard]] std::optional<double> accuracy() const {
    const auto* classes = std::get_if<ClassScores>(&scores);
    return classes == nullptr ? std::nullopt : std::optional(classes->accuracy());
  }
};

/// Checks that the model can be built before anything is started. Errors: invalid_config, unavailable.
Status check_model(const LoadedConfig& loaded);

/// Returns a final.state's digest, recomputed from its elements. Errors: io, bad_record (also if the digest
/// differs from the one in the file).
Result<Digest> digest_of_state_file(const LoadedConfig& loaded, const std::string& state_file);

/// Description of an agreed state whose digest was verified.
struct StateFacts {
  Stamp stamp;
  Digest digest;
  std::uint64_t rows = 0;
  std::map<PartitionId, PartitionProgress> partitions;
};
/// Errors: those of digest_of_state_file().
Result<StateFacts> inspect_state_file(const LoadedConfig& loaded, const std::string& state_file);

/// Writes a checkpoint's model as a safetensors file; `out` is replaced atomically. `from`: a file, or a
/// folder (a device's data directory or its checkpoints), whose newest usable checkpoint is used.
/// `optimizer`: optional second file for the optimizer's arrays. Errors: as above, io and unavailable (cannot
/// be written).
struct Exported {
  StateFacts state;
  Normalization normalization = Normalization::none;
};
Result<Exported> export_state_file(const LoadedConfig& loaded, const std::string& from,
                                   const std::string& out, const std::string& optimizer = "");

/// Result of `rivulet checkpoint prune`.
struct PruneReport {
  CheckpointFolder::Pruned files;
  std::vector<std::string> problems;
};
/// Deletes this device's checkpoints except the `keep` newest usable ones. Errors: invalid_config (a device
/// runs in the directory; the folder cannot be written), io (no such folder).
Result<PruneReport> prune_checkpoints(const LoadedConfig& loaded, std::size_t keep);

/// Result of `rivulet checkpoint restore`.
struct Restored {
  StateFacts to;
  std::string file;
  CheckpointFolder::GoneBack gone;
  /// Newest usable checkpoint before the restore; nullopt if it is `file` itself.
  std::optional<StateFacts> from;
  Stamp newest;  ///< newest stamp before the restore, by file names
};
/// Makes `file`, a checkpoint of this device, the state to resume from. Errors: invalid_config (a device runs
/// in the directory; the folder cannot be written), usage (the file is not in the folder), io, bad_record
/// (unusable file; nothing was changed).
Result<Restored> restore_checkpoint(const LoadedConfig& loaded, const std::string& file);

/// Evaluates a final.state on the test split of a data set, in a process that did not train it. Errors: as
/// above, io (data).
Result<Evaluation> evaluate_state_file(const LoadedConfig& loaded, const std::string& state_file,
                                       const std::string& data);

}  // namespace rivulet::runtime::cli
