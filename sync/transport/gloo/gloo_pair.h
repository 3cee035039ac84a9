#pragma once
#include <string>

namespace gloo::transport::tcp {
class Pair;
}

/// Functions of Gloo's pairs and devices that are defined in the program, in the place of LibTorch's
/// (docs/adr/0045). They call LibTorch's own, which are looked up by name.
namespace rivulet::sync::gloo_door {

/// Empty: this LibTorch has all that is needed. Else what it lacks.
std::string missing_in_gloo();

/// The sentence in the middle of "[file:line] sentence. Advice and a backtrace".
std::string plain(const char* text);

bool is_connected(::gloo::transport::tcp::Pair& pair);

}  // namespace rivulet::sync::gloo_door
