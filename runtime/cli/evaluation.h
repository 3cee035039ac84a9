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

/// What a final state is worth.
struct Evaluation {
  Digest digest;  ///< of the state as read, computed here
  std::size_t parameters = 0;
  std::uint64_t rows = 0;
  double loss = 0;       ///< mean of all rows
  DropCounts dropped{};  ///< rows that could not be decoded
  std::variant<RegressionScores, ClassScores> scores;

  /// nullopt: a regression has none.
  [[nodiscard]] std::optional<double> accuracy() const {
    const auto* classes = std::get_if<ClassScores>(&scores);
    return classes == nullptr ? std::nullopt : std::optional(classes->accuracy());
  }
};

/// Checks that the model can be made at all, before anything is started. Errors: invalid_config, unavailable.
Status check_model(const LoadedConfig& loaded);

/// The digest of a final.state, computed here from its numbers. Errors: io, bad_record (also: other numbers
/// than the digest written into the file).
Result<Digest> digest_of_state_file(const LoadedConfig& loaded, const std::string& state_file);

/// The head of an agreed state, after its numbers were found to be those of its digest.
struct StateFacts {
  Stamp stamp;
  Digest digest;
  std::uint64_t rows = 0;
  std::map<PartitionId, PartitionProgress> partitions;
};
/// Errors: as above.
Result<StateFacts> inspect_state_file(const LoadedConfig& loaded, const std::string& state_file);

/// Writes the model of a checkpoint as a safetensors file, `out` replaced as a whole. `from`: a file, or a
/// folder (a device's data directory, or its checkpoints): then the newest that can be used. `optimizer`:
/// if not empty, a second file, for what the optimizer remembers. Returns what was exported. Errors: as
/// above, io and unavailable (cannot be written).
struct Exported {
  StateFacts state;
  Normalization normalization = Normalization::none;
};
Result<Exported> export_state_file(const LoadedConfig& loaded, const std::string& from,
                                   const std::string& out, const std::string& optimizer = "");

/// What `rivulet checkpoint prune` did.
struct PruneReport {
  CheckpointFolder::Pruned files;
  std::vector<std::string> complaints;
};
/// Deletes the checkpoints of this device but the `keep` newest usable ones. Errors: invalid_config (a device
/// runs there; the folder cannot be written), io (there is no such folder).
Result<PruneReport> prune_checkpoints(const LoadedConfig& loaded, std::size_t keep);

/// What `rivulet checkpoint restore` did.
struct Restored {
  StateFacts to;
  std::string file;
  CheckpointFolder::GoneBack gone;
  /// The newest before it that could be used; none: `file` itself.
  std::optional<StateFacts> from;
  Stamp newest;  ///< of all before it, by their names
};
/// Makes `file`, a checkpoint in the folder of this device, the one that it resumes from. Errors:
/// invalid_config (a device runs there; the folder cannot be written), usage (the file is not in the folder),
/// io, bad_record (the file cannot be used; nothing was changed).
Result<Restored> restore_checkpoint(const LoadedConfig& loaded, const std::string& file);

/// Measures a final.state on the test split of a data set: forward passes in a process that did not train it.
/// Errors: as above, io (data).
Result<Evaluation> evaluate_state_file(const LoadedConfig& loaded, const std::string& state_file,
                                       const std::string& data);

}  // namespace rivulet::runtime::cli
