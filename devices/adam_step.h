#pragma once
#include "devices/optimizer.h"

/// The step shared by adam and adamw, which differ only in weight decay (private to devices/optimizer/).
/// Equivalent to torch.optim.Adam and AdamW without amsgrad.
namespace rivulet::devices {

inline constexpr Key adam_keys[] = {
    {.name = "train.optimizer.beta1",
     .text = "0.9",
     .help = "for adam and adamw, decay factor per step of the running mean of gradients",
     .least = 0,
     .most = 0.999999},
    {.name = "train.optimizer.beta2",
     .text = "0.999",
     .help = "for adam and adamw, decay factor per step of the running mean of squared gradients",
     .least = 0,
     .most = 0.99999999},
    {.name = "train.optimizer.eps",
     .text = "1e-8",
     .help = "for adam and adamw, added to the denominator, so that the step is finite where gradients are 0",
     .least = 0,
     .above = true}};
inline constexpr RememberedArray adam_arrays[] = {{"exp_avg", ArrayKind::gradient},
                                                  {"exp_avg_sq", ArrayKind::square}};

enum class Decay : std::uint8_t {
  into_gradient,  ///< g += wd w
  decoupled,      ///< w -= lr wd w, before the step
};

void adam_step(const OptimizerStep& step, Decay decay);

}  // namespace rivulet::devices
