#pragma once
#include <cstddef>
#include <span>
#include <string_view>

namespace rivulet::runtime {

/// What a file that is not the one that was meant probably is, by its first bytes (64 are enough), with the
/// command that takes it: "a safetensors file (rivulet checkpoint export writes them)". Empty: nobody knows.
std::string_view kind_of_file(std::span<const std::byte> begin);

}  // namespace rivulet::runtime
