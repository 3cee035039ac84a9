#pragma once
#include <cstddef>
#include <span>

/// How far the labels of devices' streams are from those of the group. Pure; by operations that are rounded
/// the same everywhere.
namespace rivulet::sync::policy {

/// Classes are counted by their number modulo this.
inline constexpr std::size_t label_bins = 16;

/// Mean of the devices' Jensen-Shannon distances to the mixture of all, by rows: 0, all see the same labels,
/// to 1, none sees what others see. `counts`: rows of each label, [devices, label_bins]. 0 where fewer than
/// two devices have any. Source: Lin 1991 (IEEE Trans. Inf. Theory 37), with logarithms to base 2, and the
/// square root of it, which is a metric (Endres and Schindelin 2003).
double skew_of(std::span<const double> counts);

}  // namespace rivulet::sync::policy
