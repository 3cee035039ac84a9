#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/stamp.h"

/// Local metadata of a checkpoint: save time and model score. It is kept outside the image, whose bytes must
/// be identical on all devices.
namespace rivulet::runtime {

/// Kind of score. The order matches `measures` in checkpoint_notes.cpp.
enum class Measure : std::uint8_t {
  held_out_accuracy,  ///< latest measurement on held-out rows
  accuracy,           ///< prequential, over the last rows
  loss,               ///< prequential, for a regression
};
std::string_view name_of(Measure measure) noexcept;

struct Score {
  Measure measure = Measure::accuracy;
  double value = 0;  ///< finite
  /// False if the measures differ: such scores are not comparable.
  [[nodiscard]] bool better_than(const Score& other) const noexcept;
};

struct CheckpointNote {
  std::int64_t saved_ms = 0;  ///< Unix time
  std::optional<Score> score;
};
using CheckpointNotes = std::map<Stamp, CheckpointNote>;

inline constexpr std::size_t notes_bytes_max = std::size_t{1} << 20U;  ///< room for ten thousand checkpoints

/// One line per checkpoint, ascending: "3.500 1764236534123 accuracy 0.973" (the last two fields only if
/// there is a score).
std::string text_of(const CheckpointNotes& notes);
/// Ignores malformed lines: a checkpoint stays usable without its note.
CheckpointNotes notes_in(std::string_view text);

/// Returns the best checkpoint by the measure of the newest scored one; on a tie, the newest. nullopt if
/// there are no scores.
std::optional<Stamp> best_of(const CheckpointNotes& notes);

}  // namespace rivulet::runtime
