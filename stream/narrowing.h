#pragma once
#include <string>
#include <vector>

#include "stream/decoder.h"

/// What is to be said of features whose numbers 32 bits cannot hold: by peek, validate and run alike.
namespace rivulet::stream {

/// So much is lost that a model notices, and that a shift saves: a twentieth of the differences between rows,
/// and ten of them, of values that lie far from 0 and near each other.
bool loses(const Narrowing& feature) noexcept;

/// The shift that brings the middle of the values near 0.
double shift_for(const Narrowing& feature) noexcept;

/// A sentence for each feature that loses, at most eight; empty: none does.
std::vector<std::string> narrowing_words(const Decoder& decoder);

}  // namespace rivulet::stream
