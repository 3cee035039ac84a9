#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/gradient_view.h"
#include "core/stamp.h"
#include "sync/compressor/compressor.h"

namespace rivulet::sync {

/// Bytes of slots that have left, each counted once, however many peers it went to.
struct SlotBytes {
  std::uint64_t values = 0;
  std::uint64_t positions = 0;  ///< what says where the values belong, and what stays empty
};

/// What this device has contributed and not sent yet, in units of the agreed sum. It belongs to a state: the
/// sum of a round holds what was sent and the residual the rest, so both change with the same step or not at
/// all. Whether an unfinished round became part of the state is known only when the next view names its
/// target:
///
///   stage -> sent -> commit (the sum was applied) | drop (it was not) | resolve (the view died meanwhile)
///
/// Source: error feedback (Karimireddy et al., 2019), with the round's weight inside. Owner: the worker, lent
/// to the session of each view; the train thread only. Takes no memory until it is used, then 2 (P + B)
/// numbers.
class Residual {
 public:
  /// `of_movements`: the group agrees about movements behind own steps, not about gradients: another unit.
  /// `movement_per_gradient`: between them, how far a gradient moves parameters in the end.
  explicit Residual(const ContributionShape& shape, bool of_movements = false,
                    double movement_per_gradient = 1)
      : shape_(shape), of_movements_(of_movements), movement_per_gradient_(movement_per_gradient) {}
  [[nodiscard]] bool of_movements() const noexcept { return of_movements_; }
  /// What is kept is left of movements from now on, or of gradients: as much of the one as moves parameters
  /// as far as the other, momentum included. One pass if it was not.
  void become(bool of_movements);

  /// What is kept + weight * the parameters of `mine` [P + B], and its buffers behind: what this round has to
  /// send. `mine` is not looked at with weight 0. Valid until commit(), drop() or resolve(). 3 passes over P.
  /// `marks`: left() will say where something leaves; one pass more, and one for each slot.
  GradientView stage(const GradientView& mine, double weight, bool marks = false);
  /// Nobody knows the weight yet: it was guessed for this many rows of this device.
  void guess(double weight, std::uint32_t own_rows) noexcept { guess_ = {weight, own_rows}; }
  /// The weight turns out to be this one: what is staged grows by the rest of `mine`.
  void reweigh(const GradientView& mine, double weight);
  /// The parameters [P] of what is staged, for collectives that add what peers have sent.
  [[nodiscard]] GradientView staged();
  /// The slot leaves: what it says is no longer kept. It is of the parameters from `begin` on.
  void sent(const CompressorEntry& compressor, const Coding& coding, std::span<const std::byte> slot,
            std::size_t begin = 0);
  /// The numbers at these places leave, as they are, with this many bytes of positions.
  void sent_at(std::span<const std::uint32_t> positions, std::uint64_t position_bytes);
  /// These numbers [P] leave, in this many bytes.
  void sent(const GradientView& numbers, std::uint64_t bytes);
  /// All of it leaves.
  void sent_all();
  /// Entries that are no finite numbers are not kept: no sum with them could ever be applied.
  void commit();
  void drop() noexcept { is_staged_ = false; }
  [[nodiscard]] bool is_staged() const noexcept { return is_staged_; }
  /// [P], not 0 where something of what is staged has left; nothing if nobody wanted to know.
  [[nodiscard]] GradientView left();

  /// The state that it belongs to is this one now; `rows`: its row clock.
  void follow(const Stamp& stamp, std::uint64_t rows) noexcept {
    stamp_ = stamp;
    rows_ = rows;
  }
  /// A view starts from `target`: what was staged is part of that, or not; of another state's residual
  /// nothing is kept. A step that trained no row (only offsets moved, or the sum was not finite) has nothing
  /// of it. `mine`: what was staged last; a guessed weight is made good, for the row clocks say what it was.
  /// Returns the norm of what is lost.
  double resolve(const Stamp& target, std::uint64_t rows, const GradientView& mine = {});
  /// What is kept is rewritten, as the parameters that it will be added to were: change(GradientView [P]).
  template <class Change>
  void rewrite(const Change& change) {
    if (empty()) return;
    change(kept());
    measure();
  }
  /// Nothing is kept any more.
  void forget() noexcept {
    drop();
    norm_ = 0;
  }
  /// What was saved with a state: `numbers` [P], left of movements or of gradients.
  void restore(const Stamp& stamp, std::uint64_t rows, std::span<const std::byte> numbers, bool of_movements);
  [[nodiscard]] const Stamp& stamp() const noexcept { return stamp_; }
  [[nodiscard]] bool empty() const noexcept { return !(norm_ > 0); }
  [[nodiscard]] double norm() const noexcept { return norm_; }
  /// Since it was made.
  [[nodiscard]] const SlotBytes& slot_bytes() const noexcept { return slot_bytes_; }
  /// [P], or nothing while it is empty.
  [[nodiscard]] std::span<const std::byte> numbers() const noexcept;
  [[nodiscard]] GradientView kept();

 private:
  [[nodiscard]] GradientView view(std::vector<std::byte>& memory) const;
  void measure();
  void add(const GradientView& mine, double weight);

  struct Guess {
    double weight = 0;
    std::uint32_t own_rows = 0;  ///< 0: nothing was guessed
  };
  ContributionShape shape_;
  bool of_movements_;
  double movement_per_gradient_;
  Stamp stamp_;                    ///< of the state that kept_ belongs to
  std::uint64_t rows_ = 0;         ///< its row clock
  std::vector<std::byte> kept_;    ///< [P + B], of which P count; meaningless while norm_ is 0
  std::vector<std::byte> staged_;  ///< [P + B]
  std::vector<std::byte> left_;    ///< [P + B], of which P count
  bool marks_ = false;             ///< left_ is of what is staged
  bool is_staged_ = false;
  Guess guess_;
  double norm_ = 0;  ///< of kept_
  SlotBytes slot_bytes_;
};

}  // namespace rivulet::sync
