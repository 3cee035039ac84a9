#include "devices/torch/script_network.h"

#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/csrc/jit/runtime/print_handler.h>

#include <atomic>
#include <fstream>
#include <ios>
#include <iostream>
#include <span>
#include <sstream>
#include <string_view>
#include <utility>

#include "core/printable.h"
#include "core/sha256.h"
#include "devices/script_file.h"
#include "devices/torch/zip_size.h"

namespace rivulet::devices {
namespace {

/// Registers the tensors of a script's module in `to`, with its children as submodules.
void adopt(torch::nn::Module& to, const torch::jit::Module& script);

/// A child module.
struct Part final : torch::nn::Module {
  explicit Part(const torch::jit::Module& script) { adopt(*this, script); }
};

void adopt(torch::nn::Module& to, const torch::jit::Module& script) {
  for (const auto& parameter : script.named_parameters(/*recurse=*/false))
    to.register_parameter(parameter.name, parameter.value, parameter.value.requires_grad());
  for (const auto& buffer : script.named_buffers(/*recurse=*/false))
    to.register_buffer(buffer.name, buffer.value);
  for (const auto& child : script.named_children())
    to.register_module(child.name, std::make_shared<Part>(child.value));
}

/// Writes the output of scripts to standard error, where it cannot mix with results, up to a limit.
void show_print(const std::string& text) {
  constexpr int prints_max = 100;
  constexpr std::size_t line_max = 500;
  static std::atomic<int> prints{0};  // the library has one handler for all scripts
  const int before = prints.fetch_add(1);
  if (before > prints_max) {
    prints.store(prints_max + 1);
    return;
  }
  std::string_view rest = text;
  while (rest.ends_with('\n')) rest.remove_suffix(1);
  const std::string shown =
      before == prints_max ? "(further output is omitted)" : printable(rest.substr(0, line_max));
  std::cerr << "model.file prints: " + shown + "\n";
}

}  // namespace

Result<ScriptBytes> read_script(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return Error{ErrorCode::io, path + ": cannot be read"};
  const auto size = static_cast<std::int64_t>(file.tellg());
  if (size <= 0 || static_cast<std::uint64_t>(size) > script_file_max_bytes)
    return Error{ErrorCode::io, path + ": " + (size > 0 ? "is larger than 1 GiB" : "is empty or not a file")};
  ScriptBytes script;
  script.bytes.resize(static_cast<std::size_t>(size));
  file.seekg(0);
  if (!file.read(script.bytes.data(), size)) return Error{ErrorCode::io, path + ": cannot be read"};
  const auto unpacked = unpacked_bytes(script.bytes);
  if (!unpacked) return Error{ErrorCode::io, path + ": was not saved by torch.jit"};
  if (*unpacked > script_file_max_bytes) return Error{ErrorCode::io, path + ": unpacks to more than 1 GiB"};
  // Every file of torch.jit has constants; torch.save writes only tensors.
  if (has_entry(script.bytes, "data.pkl") && !has_entry(script.bytes, "constants.pkl"))
    return Error{ErrorCode::io,
                 path +
                     ": contains tensors without a module, as torch.save(model.state_dict()) writes "
                     "them: save torch.jit.script(model) instead"};
  script.unpacked = *unpacked;
  script.sha256 = hex_of(sha256_of(std::as_bytes(std::span(script.bytes))));
  return script;
}

ScriptNetwork::ScriptNetwork(const std::string& bytes) {
  torch::jit::setPrintHandler(show_print);
  std::istringstream in(bytes);
  script_ = torch::jit::load(in, torch::kCPU);
  adopt(*this, script_);
}

/// Disables the executor's graph optimization, since its result, hence the last bits, depends on earlier
/// calls.
torch::Tensor ScriptNetwork::forward(torch::Tensor rows) {
  const torch::jit::GraphOptimizerEnabledGuard as_written(false);
  return script_.forward({std::move(rows)}).toTensor();
}

void ScriptNetwork::train(bool on) {
  Network::train(on);
  script_.train(on);
}

std::string ScriptNetwork::untrainable() const {
  if (parameters().empty()) return "has no trainable parameter";
  for (const auto& item : named_parameters())
    if (!item.value().is_floating_point() || !item.value().requires_grad())
      return "parameter '" + item.key() + "' is frozen: register it as a buffer";
  return "";
}

std::string ScriptNetwork::signature() const {
  std::ostringstream text;
  text << script_.get_method("forward").function().getSchema();
  return text.str();
}

}  // namespace rivulet::devices
