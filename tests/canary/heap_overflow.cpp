// Writes one element past its end; AddressSanitizer must report it.
#include <cstddef>
#include <memory>

int main(int argc, char**) {
  const auto size = static_cast<std::size_t>(argc) * 16;
  const std::unique_ptr<int[]> values(new int[size]());
  volatile int* first = values.get();
  first[size] = 1;
  return 0;
}
