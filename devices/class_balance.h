#pragma once
#include <memory>
#include <vector>

#include "devices/trainer.h"

namespace rivulet::devices {

/// More classes are not counted: each is a number in every contribution.
inline constexpr std::size_t counted_classes_max = 256;

/// A trainer whose rows weigh by their class in the gradient; losses and hits are reported as without.
/// `weights` [classes]: those; empty: by one over the square root of the class's share of the rows that the
/// group has trained, 1 on average over these; old rows fade over `window` rows. Each
/// class with the same part in the gradient would be too much: of one fault in a hundred rows, more than half
/// of what is called a fault was none (bench/changes). The counts are agreed: a device contributes the share
/// of each class in its rows, "measured.class_share" [classes], behind the model's buffers. A class that is
/// not known yet counts as one row of it; no weight is above 100.
std::unique_ptr<Trainer> make_balancing(std::unique_ptr<Trainer> model, Device& device, std::size_t classes,
                                        std::vector<float> weights, double window);

/// The rows of an agreed step are counted; what was measured is 0 again. Pure.
/// Errors: those of a device that has to copy.
Status follow_classes(ModelState& state, double rows, Device& device);

}  // namespace rivulet::devices
