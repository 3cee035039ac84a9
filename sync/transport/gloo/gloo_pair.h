#pragma once
#include <string>

namespace gloo::transport::tcp {
class Pair;
}

/// Functions of Gloo's pairs and devices that the program defines in place of LibTorch's (docs/adr/0045).
/// They call LibTorch's own functions, found by name.
namespace rivulet::sync::gloo_door {

/// Returns the names of the functions that this LibTorch lacks; empty if none.
std::string missing_in_gloo();

/// Returns the sentence within "[file:line] sentence. Advice and a backtrace".
std::string plain(const char* text);

bool is_connected(::gloo::transport::tcp::Pair& pair);

}  // namespace rivulet::sync::gloo_door
