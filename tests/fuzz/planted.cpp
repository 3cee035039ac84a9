// Proves that the fuzzer finds bugs: this target reads beyond its input after four bytes that a search must
// find. scripts/fuzz fails if it does not.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::uint8_t> input(data, data + size);
  if (size < 4 || std::memcmp(data, "RVLT", 4) != 0) return 0;
  const volatile std::uint8_t beyond = input.data()[size];
  return beyond > 255 ? 1 : 0;
}
