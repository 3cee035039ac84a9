#pragma once
#include <cstddef>
#include <memory>
#include <string_view>

#include "core/clock.h"
#include "core/gradient_view.h"
#include "core/result.h"

namespace rivulet::devices {

/// Memory allocated by a Device and freed by its destructor.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;
  /// Returns the first `count` elements as an array of `scalar`.
  [[nodiscard]] virtual GradientView view(Scalar scalar, std::size_t count) const = 0;
};

/// Size of a computation, for devices that charge time by a profile.
struct Work {
  std::size_t rows = 0;
};

/// Where the trainers of a device compute.
struct ComputePlace {
  bool copies_arrays =
      false;     ///< computes outside host memory: values are copied there before a pass and back after it
  int gpu = -1;  ///< index of the GPU; -1: the host
};

/// A compute device: this host, a GPU, or a profile of one. Owner: the train thread.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Returns zeroed memory of the kind this device computes on. Errors: unavailable (out of memory, with the
  /// size).
  virtual Result<std::unique_ptr<Memory>> allocate(std::size_t bytes) = 0;
  /// Returns zeroed memory that the host writes and this device reads fast (batches, payloads). Same as
  /// allocate() on a CPU.
  virtual Result<std::unique_ptr<Memory>> allocate_shared(std::size_t bytes) = 0;
  /// Returns the same values in host-readable memory: identity on a CPU, else a copy valid until the next
  /// to_host().
  virtual Result<GradientView> to_host(const GradientView& own) = 0;
  /// Copies values written by the host back into `own`. No-op if both are the same memory.
  virtual Status from_host(const GradientView& host, const GradientView& own) = 0;
  [[nodiscard]] virtual ComputePlace computes_on() const noexcept { return {}; }
  /// Called right after `work` was computed. A device with a profile advances its clock; real ones do
  /// nothing.
  virtual void charge(const Work& work) = 0;
};

/// The CPU of this process. Stateless.
std::unique_ptr<Device> make_host_device();

/// Makes the device selected by key device.type: "cpu"; "cuda", the first GPU visible to the process; "auto",
/// that GPU if present and supported by this build, else the CPU. Errors: unavailable (only for "cuda", with
/// the reason).
Result<std::unique_ptr<Device>> make_device(std::string_view type);

}  // namespace rivulet::devices
