#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

#include "core/digest.h"
#include "core/result.h"
#include "runtime/agreed_state.h"
#include "runtime/config/config.h"

namespace rivulet::runtime::cli {

/// What a final state is worth.
struct Evaluation {
  Digest digest;  ///< of the state as read, computed here
  std::size_t parameters = 0;
  std::uint64_t rows = 0;
  double accuracy = 0;
};

/// Checks that the model can be made at all, before anything is started. Errors: invalid_config, unavailable.
Status check_model(const LoadedConfig& loaded);

/// The digest of a final.state, computed here from its numbers. Errors: io, bad_record (also: other numbers
/// than the digest written into the file).
Result<Digest> digest_of_state_file(const LoadedConfig& loaded, const std::string& state_file);

/// What an agreed state says of itself, after its numbers were found to be those of its digest.
struct StateFacts {
  Stamp stamp;
  Digest digest;
  std::uint64_t rows = 0;
  std::map<PartitionId, PartitionProgress> partitions;
};
/// Errors: as above.
Result<StateFacts> inspect_state_file(const LoadedConfig& loaded, const std::string& state_file);

/// Measures a final.state on the test split of a data set: forward passes in a process that did not train it.
/// Errors: as above, io (data).
Result<Evaluation> evaluate_state_file(const LoadedConfig& loaded, const std::string& state_file,
                                       const std::string& data);

}  // namespace rivulet::runtime::cli
