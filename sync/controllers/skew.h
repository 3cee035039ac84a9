#pragma once
#include <cstddef>
#include <span>

/// Label skew between devices' streams. Pure. Uses only operations that round the same everywhere.
namespace rivulet::sync::policy {

/// Classes are counted by their number modulo this value.
inline constexpr std::size_t label_bins = 16;

/// Mean of the devices' Jensen-Shannon distances to the mixture of all, weighted by rows: from 0 (same labels
/// everywhere) to 1 (no labels in common). `counts`: rows of each label, [devices, label_bins]. 0 if fewer
/// than two devices have rows. Source: Lin 1991 (IEEE Trans. Inf. Theory 37), with logarithms to base 2; its
/// square root is a metric (Endres and Schindelin 2003).
double skew_of(std::span<const double> counts);

}  // namespace rivulet::sync::policy
