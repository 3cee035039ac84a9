#pragma once
#include <cstddef>
#include <memory>
#include <string_view>

#include "core/clock.h"
#include "core/gradient_view.h"
#include "core/result.h"

namespace rivulet::devices {

/// Memory that a device handed out; freed by it. `view(scalar)` looks at it as numbers.
class Memory {
 public:
  virtual ~Memory() = default;
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;
  /// count numbers from the start.
  [[nodiscard]] virtual GradientView view(Scalar scalar, std::size_t count) const = 0;
};

/// What a piece of computing was, for devices that charge for it instead of taking the time.
struct Work {
  std::size_t rows = 0;
};

/// Where trainers that are made for a device compute.
struct ComputePlace {
  bool copies = false;  ///< not in the host's memory: numbers go there for a pass, and back behind it
  int gpu = -1;         ///< index of the GPU; -1: the host
};

/// Something that computes: this host, a GPU, or a profile. Owner: the train thread.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Zeroed memory of the kind this device computes on. Errors: unavailable (out of memory, with the size).
  virtual Result<std::unique_ptr<Memory>> allocate(std::size_t bytes) = 0;
  /// Zeroed memory the host can write and this device can read fast (batches, payloads). On a CPU the same as
  /// allocate().
  virtual Result<std::unique_ptr<Memory>> allocate_shared(std::size_t bytes) = 0;
  /// The same numbers where the host can read them: identity on a CPU, else a copy that lives until the next
  /// to_host().
  virtual Result<GradientView> to_host(const GradientView& own) = 0;
  /// Brings numbers the host wrote back into `own`. Identity when they are the same memory.
  virtual Status from_host(const GradientView& host, const GradientView& own) = 0;
  [[nodiscard]] virtual ComputePlace computes_on() const noexcept { return {}; }
  /// Called right after `work` was computed. Real devices took the time already; a profile moves its clock.
  virtual void charge(const Work& work) = 0;
};

/// The CPU of this process. Stateless.
std::unique_ptr<Device> make_host_device();

/// device.type: "cpu"; "cuda", the first GPU that the process may see; "auto", that GPU if there is one and
/// this build knows about GPUs, else the CPU. Errors: unavailable ("cuda" alone; names why there is none).
Result<std::unique_ptr<Device>> make_device(std::string_view type);

}  // namespace rivulet::devices
