#pragma once
#include <memory>
#include <vector>

#include "devices/trainer.h"

namespace rivulet::devices {

/// Maximum number of counted classes; each one adds an element to every contribution.
inline constexpr std::size_t counted_classes_max = 256;

/// Returns a trainer that weights each row's gradient by its class; reported losses and hits are unweighted.
/// `weights` [classes] are fixed weights. If empty, a class has the weight 1 / sqrt(its share of the rows
/// trained by the group), scaled to a mean of 1 over these rows; old rows fade over `window` rows. Equal
/// parts of all classes in the gradient overcorrect: with one faulty row in a hundred, more than half of the
/// predicted faults were false (bench/changes). The counts are agreed state: a device contributes the share
/// of each class in its rows, "measured.class_share" [classes], after the model's buffers. A class that was
/// never seen counts as one row. The maximum weight is 100.
std::unique_ptr<Trainer> make_balancing(std::unique_ptr<Trainer> model, Device& device, std::size_t classes,
                                        std::vector<float> weights, double window);

/// Adds the rows of an agreed step to the class counts and zeroes the measurements. Pure. Errors: from copies
/// between host and device.
Status follow_classes(ModelState& state, double rows, Device& device);

}  // namespace rivulet::devices
