#pragma once
#include "runtime/config/config.h"
#include "runtime/state/state_image.h"
#include "stream/decoder.h"

namespace rivulet::runtime {

/// What the numbers of this job's states mean: features in the order of columns, what is predicted, classes,
/// how records become numbers, and what of the model its shapes do not tell. Lists that are too long for a
/// file are their length and a digest. Pure.
Meaning meaning_of(const Config& config, const stream::Decoder& decoder);

/// The features in the order of columns, as the configuration calls them; empty: the format has no names.
std::vector<std::string> feature_names(const Config& config, const stream::Decoder& decoder);

/// The labels in the order of their classes; "0", "1", ... where they have no names; empty: a regression.
std::vector<std::string> class_labels(const Config& config);

}  // namespace rivulet::runtime
