#pragma once
#include <string>
#include <vector>

#include "stream/decoder.h"

/// Warnings about features that lose precision in 32 bits; shared by peek, validate and run.
namespace rivulet::stream {

/// Whether the loss affects the model and a shift avoids it: at least a twentieth of the differences between
/// rows, and at least ten, are lost, and the values lie far from 0 and close together.
bool loses(const Narrowing& feature) noexcept;

/// Returns a shift that moves the middle of the value range close to 0.
double shift_for(const Narrowing& feature) noexcept;

/// One sentence for each feature that loses precision, at most eight; empty if none does.
std::vector<std::string> narrowing_words(const Decoder& decoder);

}  // namespace rivulet::stream
