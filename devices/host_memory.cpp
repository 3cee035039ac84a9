#include "devices/host_memory.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "core/check.h"

namespace rivulet::devices {
namespace {

constexpr std::size_t alignment = 64;

struct FreeMemory {
  void operator()(std::byte* p) const noexcept { std::free(p); }
};

class HostMemory final : public Memory {
 public:
  HostMemory(std::unique_ptr<std::byte, FreeMemory> data, std::size_t bytes)
      : data_(std::move(data)), bytes_(bytes) {}
  [[nodiscard]] std::size_t bytes() const noexcept override { return bytes_; }
  [[nodiscard]] GradientView view(Scalar scalar, std::size_t count) const override {
    RIVULET_CHECK(count <= bytes_ / bytes_of(scalar), "the view is larger than its memory");
    return {data_.get(), count, scalar, MemoryKind::host, -1};
  }

 private:
  std::unique_ptr<std::byte, FreeMemory> data_;
  std::size_t bytes_;
};

}  // namespace

Result<std::unique_ptr<Memory>> allocate_host_memory(std::size_t bytes) {
  std::unique_ptr<std::byte, FreeMemory> data;
  if (bytes <= PTRDIFF_MAX - alignment) {
    const std::size_t rounded =
        (bytes / alignment + 1) * alignment;  // never 0, so that an empty array has an address
    data.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  }
  if (data == nullptr) {
    return Error{ErrorCode::unavailable,
                 fmt::format("{} bytes of memory are not available on this host", bytes)};
  }
  std::memset(data.get(), 0, bytes);
  return std::unique_ptr<Memory>(std::make_unique<HostMemory>(std::move(data), bytes));
}

void copy_host_numbers(const GradientView& from, const GradientView& to) {
  RIVULET_CHECK(from.count == to.count && from.scalar == to.scalar, "arrays differ in shape");
  const auto source = from.host_bytes();
  const auto target = to.host_bytes();
  if (source.data() == target.data() || source.empty()) return;
  std::memcpy(target.data(), source.data(), source.size());
}

}  // namespace rivulet::devices
