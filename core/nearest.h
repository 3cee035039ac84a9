#pragma once
#include <string>
#include <vector>

namespace rivulet {

/// Returns the most similar candidate, or an empty string if none is similar. Up to a third of the letters
/// may differ; a swap of neighbours counts as one. Cost: the product of the lengths, per candidate.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

/// As nearest(), but ignores candidates that differ from `word` only in a trailing number: `presses-2` is not
/// a misspelled `presses-1`.
std::string nearest_but_number(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace rivulet
