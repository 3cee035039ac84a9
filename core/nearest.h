#pragma once
#include <string>
#include <vector>

namespace rivulet {

/// The candidate that was probably meant: up to a third of the letters may be wrong, and swapped neighbours
/// count as one; more is another word. Empty: none is. Cost: the product of the lengths, for each.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

/// The same, less those that differ from the word in the number at their end alone: `presses-2` is not a
/// wrong `presses-1`.
std::string nearest_but_number(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace rivulet
