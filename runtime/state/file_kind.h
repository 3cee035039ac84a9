#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace rivulet::runtime {

/// Returns the probable kind of an unexpected file, judged by its first bytes (64 suffice), and the command
/// that reads it: "a safetensors file, as written by rivulet checkpoint export". Empty if unknown.
std::string_view kind_of_file(std::span<const std::byte> begin);

}  // namespace rivulet::runtime
