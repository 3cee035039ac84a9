#pragma once
#include <string>
#include <vector>

#include "runtime/config/value.h"

/// The door to toml++ (private to config/).
namespace rivulet::runtime {

/// One value of a document with the path that leads to it. An empty table is a leaf of kind Other "a table".
struct TomlLeaf {
  std::vector<std::string> path;
  std::vector<KeyPlace> places;  ///< of each name of the path
  Value value;
};

struct TomlText {
  std::vector<TomlLeaf> leaves;
  Problems problems;  ///< at most one: the syntax error
};

/// Parses a document; `name` is what problems call it.
TomlText read_toml(const std::string& text, const std::string& name);

}  // namespace rivulet::runtime
