// Entry point for libFuzzer: one program per target, named by RIVULET_FUZZ_TARGET.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tests/fuzz/target.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

namespace rivulet::fuzz {

extern const Target RIVULET_FUZZ_TARGET;

}  // namespace rivulet::fuzz

namespace {

const rivulet::fuzz::Target& target() {
  return rivulet::fuzz::RIVULET_FUZZ_TARGET;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  target().run(std::as_bytes(std::span(data, size)));
  return 0;
}

/// libFuzzer's own mutations; three times in four corrects the checksums after them.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned int seed) {
  size = LLVMFuzzerMutate(data, size, max_size);
  if (target().seal == nullptr || seed % 4 == 0) return size;
  const auto mutated = std::as_bytes(std::span(data, size));
  rivulet::fuzz::Bytes bytes(mutated.begin(), mutated.end());
  target().seal(bytes);
  if (bytes.size() > max_size) return size;
  std::ranges::copy(bytes, reinterpret_cast<std::byte*>(data));
  return bytes.size();
}
