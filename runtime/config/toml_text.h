#pragma once
#include <string>
#include <vector>

#include "runtime/config/value.h"

/// Wrapper of toml++ (private to config/).
namespace rivulet::runtime {

/// One value of a document with its path. An empty table is a leaf: a Value::Other with the text "a table".
struct TomlLeaf {
  std::vector<std::string> path;
  std::vector<KeyPlace> places;  ///< places of all names in the path
  Value value;
};

struct TomlText {
  std::vector<TomlLeaf> leaves;
  Problems problems;  ///< the syntax error, or none
};

/// Parses a document; `name` appears in problems.
TomlText read_toml(const std::string& text, const std::string& name);

}  // namespace rivulet::runtime
