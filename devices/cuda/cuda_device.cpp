#include "devices/cuda_device.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>

#include "core/check.h"
#include "devices/host_memory.h"

namespace rivulet::devices {
namespace {

Error cuda_error(const std::string& what, cudaError_t code) {
  return {ErrorCode::unavailable, fmt::format("{}: {}", what, ::cudaGetErrorString(code))};
}

struct FreePinned {
  void operator()(std::byte* p) const noexcept { static_cast<void>(::cudaFreeHost(p)); }
};

class PinnedMemory final : public Memory {
 public:
  PinnedMemory(std::unique_ptr<std::byte, FreePinned> data, std::size_t bytes, std::int16_t gpu)
      : data_(std::move(data)), bytes_(bytes), gpu_(gpu) {}
  [[nodiscard]] std::size_t bytes() const noexcept override { return bytes_; }
  [[nodiscard]] GradientView view(Scalar scalar, std::size_t count) const override {
    RIVULET_CHECK(count <= bytes_ / bytes_of(scalar), "the view is larger than its memory");
    return {data_.get(), count, scalar, MemoryKind::pinned, gpu_};
  }

 private:
  std::unique_ptr<std::byte, FreePinned> data_;
  std::size_t bytes_;
  std::int16_t gpu_;
};

class CudaDevice final : public Device {
 public:
  explicit CudaDevice(int gpu) : gpu_(gpu), name_(fmt::format("cuda:{}", gpu)) {}
  [[nodiscard]] std::string_view name() const noexcept override { return name_; }
  Result<std::unique_ptr<Memory>> allocate(std::size_t bytes) override { return allocate_shared(bytes); }
  Result<std::unique_ptr<Memory>> allocate_shared(std::size_t bytes) override {
    void* data = nullptr;
    // Never 0 bytes, so that an empty array has an address.
    if (const auto code = ::cudaHostAlloc(&data, bytes + 1, cudaHostAllocDefault); code != cudaSuccess) {
      static_cast<void>(::cudaGetLastError());  // else the next CUDA call returns it
      return cuda_error(fmt::format("{} bytes of pinned memory are not available", bytes), code);
    }
    std::unique_ptr<std::byte, FreePinned> owned(static_cast<std::byte*>(data));
    std::memset(data, 0, bytes);
    return std::unique_ptr<Memory>(
        std::make_unique<PinnedMemory>(std::move(owned), bytes, static_cast<std::int16_t>(gpu_)));
  }
  Result<GradientView> to_host(const GradientView& own) override { return own; }
  Status from_host(const GradientView& host, const GradientView& own) override {
    copy_host_numbers(host, own);
    return ok();
  }
  [[nodiscard]] ComputePlace computes_on() const noexcept override {
    return {.copies_arrays = true, .gpu = gpu_};
  }
  void charge(const Work&) override {}  // the real computation has already taken its time

 private:
  const int gpu_;
  const std::string name_;
};

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string gpu_text(int gpu) {
  cudaDeviceProp gpu_is{};
  if (const auto code = ::cudaGetDeviceProperties(&gpu_is, gpu); code != cudaSuccess)
    return ::cudaGetErrorString(code);
  return fmt::format("{}, {:.1f} GiB, compute capability {}.{}", gpu_is.name,
                     static_cast<double>(gpu_is.totalGlobalMem) / (1024.0 * 1024 * 1024), gpu_is.major,
                     gpu_is.minor);
}

}  // namespace

Result<std::unique_ptr<Device>> make_cuda_device(int index) {
  int count = 0;
  if (const auto code = ::cudaGetDeviceCount(&count); code != cudaSuccess)
    return cuda_error("no GPU can be used", code);
  if (index >= count)
    return Error{
        ErrorCode::unavailable,
        fmt::format("GPU {} does not exist: number of GPUs visible to this process: {}", index, count)};
  // Creates the GPU's context, so that errors occur here, with their reason, and not in a round.
  if (const auto code = ::cudaSetDevice(index); code != cudaSuccess)
    return cuda_error(fmt::format("GPU {} cannot be used", index), code);
  if (const auto code = ::cudaFree(nullptr); code != cudaSuccess)
    return cuda_error(fmt::format("GPU {} cannot be used", index), code);
  return std::unique_ptr<Device>(std::make_unique<CudaDevice>(index));
}

std::vector<std::pair<std::string, std::string>> cuda_facts() {
  int runtime = 0;
  int driver = 0;
  static_cast<void>(::cudaRuntimeGetVersion(&runtime));
  static_cast<void>(::cudaDriverGetVersion(&driver));
  std::vector<std::pair<std::string, std::string>> facts{
      {"CUDA",
       version_text(runtime) + (driver > 0 ? ", driver for " + version_text(driver) : ", no driver")}};
  int count = 0;
  if (::cudaGetDeviceCount(&count) != cudaSuccess) return facts;
  for (int gpu = 0; gpu < count; ++gpu) facts.emplace_back(fmt::format("GPU {}", gpu), gpu_text(gpu));
  return facts;
}

}  // namespace rivulet::devices
