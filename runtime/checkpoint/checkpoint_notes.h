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

/// What is known of a checkpoint besides its numbers, which must be the same bytes on all devices: when this
/// one saved it, and how good the model was then.
namespace rivulet::runtime {

/// How a model is measured. The order is that of the words in the file.
enum class Measure : std::uint8_t {
  held_out_accuracy,  ///< of held-out rows, as they were measured last
  accuracy,           ///< of the last rows, before they were trained
  loss,               ///< same; of a regression
};
std::string_view name_of(Measure measure) noexcept;

struct Score {
  Measure measure = Measure::accuracy;
  double value = 0;  ///< finite
  /// Scores of other measures cannot be compared: none is better.
  [[nodiscard]] bool better_than(const Score& other) const noexcept;
};

struct CheckpointNote {
  std::int64_t saved_ms = 0;  ///< since 1970
  std::optional<Score> score;
};
using CheckpointNotes = std::map<Stamp, CheckpointNote>;

inline constexpr std::size_t notes_bytes_max = std::size_t{1} << 20U;  ///< ten thousand checkpoints

/// A line for each, "3.500 1764236534123 accuracy 0.973", ascending; without a score the line ends before it.
std::string text_of(const CheckpointNotes& notes);
/// Lines that are not such are left out: the notes of a checkpoint are no reason to refuse it.
CheckpointNotes notes_in(std::string_view text);

/// The best of those that are scored as the newest scored one is; of equal ones the newest. nullopt: none is.
std::optional<Stamp> best_of(const CheckpointNotes& notes);

}  // namespace rivulet::runtime
