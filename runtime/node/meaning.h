#pragma once
#include "runtime/config/config.h"
#include "runtime/state/state_image.h"
#include "stream/decoder.h"

namespace rivulet::runtime {

/// Returns the meaning of the values in this job's states: features in column order, target, classes,
/// conversion of records to numbers, and model properties beyond its shapes. Lists too long for a file are
/// replaced by their length and a digest. Pure.
Meaning meaning_of(const Config& config, const stream::Decoder& decoder);

/// Returns the features in column order, by their names in the configuration; empty if the format has no
/// names.
std::vector<std::string> feature_names(const Config& config, const stream::Decoder& decoder);

/// Returns the labels in class order; "0", "1", ... if they have no names; empty for a regression.
std::vector<std::string> class_labels(const Config& config);

}  // namespace rivulet::runtime
