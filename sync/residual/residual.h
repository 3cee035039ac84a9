#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/gradient_view.h"
#include "core/stamp.h"
#include "sync/compressor/compressor.h"

namespace rivulet::sync {

/// Bytes of sent slots, each counted once for all peers.
struct SlotBytes {
  std::uint64_t values = 0;
  std::uint64_t positions = 0;  ///< positions and padding
};

/// The part of this device's contributions that was not sent yet, in units of the agreed sum. It belongs to a
/// state: the sum of a round holds the sent part and the residual the rest, so both change with the same step
/// or not at all. Only the target of the next view shows whether an unfinished round became part of the
/// state:
///
///   stage -> sent -> commit (the sum was applied) | drop (it was not) | resolve (the view was lost)
///
/// Source: error feedback (Karimireddy et al., 2019), including the round's weight. Owner: the worker, which
/// lends it to the session of each view; train thread only. Allocates on first use, then 2 (P + B) elements.
class Residual {
 public:
  /// `of_deltas`: the group sums deltas of local steps instead of gradients, in a different unit.
  /// `delta_per_gradient`: ratio of the two units, as total change of the parameters per gradient.
  explicit Residual(const ContributionShape& shape, bool of_deltas = false, double delta_per_gradient = 1)
      : shape_(shape), of_deltas_(of_deltas), delta_per_gradient_(delta_per_gradient) {}
  [[nodiscard]] bool of_deltas() const noexcept { return of_deltas_; }
  /// Converts the residual to deltas or to gradients, so that its effect on the parameters stays
  /// the same, momentum included. One pass if the unit changes.
  void become(bool of_deltas);

  /// Stages the contribution of this round: residual + weight * the parameters of `mine` [P + B], then its
  /// buffers. Does not read `mine` at weight 0. Valid until commit(), drop() or resolve(). 3 passes over P.
  /// `marks`: left() will show the sent elements; costs one more pass, and one for each slot.
  GradientView stage(const GradientView& mine, double weight, bool marks = false);
  /// Records that the staged weight is a guess for this many local rows.
  void guess(double weight, std::uint32_t own_rows) noexcept { guess_ = {weight, own_rows}; }
  /// Corrects a guessed weight: adds the difference of `mine` to the staged contribution.
  void reweigh(const GradientView& mine, double weight);
  /// The staged parameters [P], for collectives that add received parts.
  [[nodiscard]] GradientView staged();
  /// Removes the content of a sent slot, which starts at parameter `begin`.
  void sent(const CompressorEntry& compressor, const Coding& coding, std::span<const std::byte> slot,
            std::size_t begin = 0);
  /// Removes the elements at these positions, sent unchanged with `position_bytes` bytes of positions.
  void sent_at(std::span<const std::uint32_t> positions, std::uint64_t position_bytes);
  /// Removes these elements [P], sent in `bytes` bytes.
  void sent(const GradientView& numbers, std::uint64_t bytes);
  /// Removes everything.
  void sent_all();
  /// Keeps the unsent staged part as the residual. Drops non-finite elements: their sum is never applied.
  void commit();
  void drop() noexcept { is_staged_ = false; }
  [[nodiscard]] bool is_staged() const noexcept { return is_staged_; }
  /// [P], non-zero where staged elements were sent; empty if stage() was called without `marks`.
  [[nodiscard]] GradientView left();

  /// Sets the state that the residual belongs to; `rows`: its row clock.
  void follow(const Stamp& stamp, std::uint64_t rows) noexcept {
    stamp_ = stamp;
    rows_ = rows;
  }
  /// Resolves a staged round when a view starts from `target`: commits it if the target includes it, else
  /// drops it. Drops the whole residual if the target is a different state. A step without trained rows (only
  /// offsets moved, or the sum was not finite) does not include it. `mine`: the last staged contribution;
  /// corrects a guessed weight, using the rows that the target added. Returns the norm of the lost residual.
  double resolve(const Stamp& target, std::uint64_t rows, const GradientView& mine = {});
  /// Applies change(GradientView [P]) to the residual, after it was applied to the parameters.
  template <class Change>
  void rewrite(const Change& change) {
    if (empty()) return;
    change(kept());
    measure();
  }
  /// Drops the residual.
  void forget() noexcept {
    drop();
    norm_ = 0;
  }
  /// Restores a residual saved with a state: `numbers` [P], in units of deltas or gradients.
  void restore(const Stamp& stamp, std::uint64_t rows, std::span<const std::byte> numbers, bool of_deltas);
  [[nodiscard]] const Stamp& stamp() const noexcept { return stamp_; }
  [[nodiscard]] bool empty() const noexcept { return !(norm_ > 0); }
  [[nodiscard]] double norm() const noexcept { return norm_; }
  /// Bytes sent since construction.
  [[nodiscard]] const SlotBytes& slot_bytes() const noexcept { return slot_bytes_; }
  /// [P]; empty if there is no residual.
  [[nodiscard]] std::span<const std::byte> numbers() const noexcept;
  [[nodiscard]] GradientView kept();

 private:
  [[nodiscard]] GradientView view(std::vector<std::byte>& memory) const;
  void measure();
  void add(const GradientView& mine, double weight);

  struct Guess {
    double weight = 0;
    std::uint32_t own_rows = 0;  ///< 0: not a guess
  };
  ContributionShape shape_;
  bool of_deltas_;
  double delta_per_gradient_;
  Stamp stamp_;                    ///< state that kept_ belongs to
  std::uint64_t rows_ = 0;         ///< its row clock
  std::vector<std::byte> kept_;    ///< [P + B], of which P are used; undefined while norm_ is 0
  std::vector<std::byte> staged_;  ///< [P + B]
  std::vector<std::byte> left_;    ///< [P + B], of which P are used
  bool marks_ = false;             ///< left_ covers the staged contribution
  bool is_staged_ = false;
  Guess guess_;
  double norm_ = 0;  ///< of kept_
  SlotBytes slot_bytes_;
};

}  // namespace rivulet::sync
