#pragma once
// Only files of devices/torch and devices/model/torch include this header: it includes LibTorch.
#include <torch/script.h>

#include <cstdint>
#include <memory>
#include <string>

#include "devices/torch/torch_trainer.h"

namespace rivulet::devices {

struct ScriptBytes {
  std::string bytes;
  std::string sha256;
  std::uint64_t unpacked = 0;  ///< bytes of all entries after unpacking
};
/// Reads the whole file without unpacking it. Errors: io (names the file; also if torch.jit did not save it,
/// or above 1 GiB, packed or unpacked).
Result<ScriptBytes> read_script(const std::string& path);

/// The module of a TorchScript file as a Network. Shares its tensors and names with the script. Initial
/// values are those of the file.
class ScriptNetwork final : public Network {
 public:
  /// Throws the library's exceptions: call it inside guarded().
  explicit ScriptNetwork(const std::string& bytes);
  torch::Tensor forward(torch::Tensor rows) override;
  void train(bool on = true) override;
  [[nodiscard]] bool begins_as_made() const override { return true; }
  [[nodiscard]] std::string signature() const;
  /// Returns why a group cannot train it, or empty. The agreed state holds all parameters, and each needs a
  /// gradient.
  [[nodiscard]] std::string untrainable() const;

 private:
  torch::jit::Module script_;
};

}  // namespace rivulet::devices
