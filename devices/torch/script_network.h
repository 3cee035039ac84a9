#pragma once
// Only files of devices/torch and devices/model/torch include this header: it brings LibTorch.
#include <torch/script.h>

#include <cstdint>
#include <memory>
#include <string>

#include "devices/torch/torch_trainer.h"

namespace rivulet::devices {

struct ScriptBytes {
  std::string bytes;
  std::string sha256;
  std::uint64_t unpacked = 0;  ///< bytes of all that is packed in it
};
/// The whole file, not unpacked. Errors: io (names it; also: no file that torch.jit saved, more than 1 GiB of
/// it, packed or not).
Result<ScriptBytes> read_script(const std::string& path);

/// A module that a TorchScript file holds, as a Network: the same tensors under the same names, so that
/// moving them moves the script's. Its numbers begin as they lie in the file.
class ScriptNetwork final : public Network {
 public:
  /// Throws what the library throws: call it behind guarded().
  explicit ScriptNetwork(const std::string& bytes);
  torch::Tensor forward(torch::Tensor rows) override;
  void train(bool on = true) override;
  [[nodiscard]] bool begins_as_made() const override { return true; }
  [[nodiscard]] std::string signature() const;
  /// Why a group cannot train it, or empty: an agreed state holds all parameters, and every one of them gets
  /// a gradient.
  [[nodiscard]] std::string untrainable() const;

 private:
  torch::jit::Module script_;
};

}  // namespace rivulet::devices
