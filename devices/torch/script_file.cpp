#include "devices/script_file.h"

#include <utility>

#include "core/clock.h"
#include "devices/torch/guarded.h"
#include "devices/torch/script_network.h"

namespace rivulet::devices {
namespace {

double milliseconds(Duration d) {
  return 1000 * to_seconds(d);
}

void list_tensors(ScriptNetwork& network, ScriptFacts& facts) {
  for (const auto& item : network.named_parameters()) {
    facts.parameters.push_back({item.key(), item.value().sizes().vec()});
    facts.parameter_numbers += static_cast<std::uint64_t>(item.value().numel());
  }
  for (const auto& item : network.named_buffers()) {
    if (!item.value().is_floating_point()) continue;
    facts.buffers.push_back({item.key(), item.value().sizes().vec()});
    facts.buffer_numbers += static_cast<std::uint64_t>(item.value().numel());
  }
}

torch::Tensor zeros(std::span<const std::int64_t> input, std::int64_t rows) {
  std::vector<std::int64_t> shape{rows};
  shape.insert(shape.end(), input.begin(), input.end());
  return torch::zeros(shape);
}

/// Times the forward and backward pass on one row of zeros twice, since the first time includes the library's
/// setup. Uses evaluation mode, in which batch norm accepts a single row.
Status measure(ScriptNetwork& network, std::span<const std::int64_t> input, ScriptFacts& facts) {
  network.train(false);
  const RealClock clock;
  for (int i = 0; i < 2; ++i) {
    TimePoint began = clock.now();
    const torch::Tensor output = network.forward(zeros(input, 1));
    facts.forward_ms = milliseconds(clock.now() - began);
    if (!output.requires_grad()) return Error{ErrorCode::io, "none of its parameters requires a gradient"};
    began = clock.now();
    output.sum().backward();
    facts.backward_ms = milliseconds(clock.now() - began);
  }
  return ok();
}

/// Runs the model on `rows` rows of zeros, as a device will. Each row must yield one vector.
Status train_rows(ScriptNetwork& network, std::span<const std::int64_t> input, std::int64_t rows,
                  std::int64_t& outputs) {
  for (const bool training : {false, true}) {
    network.train(training);
    const torch::Tensor output = network.forward(zeros(input, rows));
    if (output.dim() != 2 || output.size(0) != rows)
      return Error{ErrorCode::io, "forward() on " + std::to_string(rows) + " rows returns shape " +
                                      std::string(c10::str(output.sizes())) + ", expected [" +
                                      std::to_string(rows) + ", OUTPUTS]"};
    outputs = output.size(1);
    if (training) output.sum().backward();
  }
  return ok();
}

Status try_rows(ScriptNetwork& network, std::span<const std::int64_t> input, ScriptFacts& facts) {
  if (const std::string why = network.untrainable(); !why.empty()) return Error{ErrorCode::io, why};
  if (Status two = train_rows(network, input, 2, facts.outputs); !two) return two;
  std::int64_t outputs = 0;
  const auto one = guarded<bool>([&]() -> Result<bool> {
    if (Status trained = train_rows(network, input, 1, outputs); !trained) return trained.error();
    return true;
  });
  if (!one) facts.one_row = one.error().message;
  return measure(network, input, facts);
}

}  // namespace

Result<ScriptFacts> inspect_script(const std::string& path, std::span<const std::int64_t> input) {
  auto script = read_script(path);
  if (!script) return script.error();
  auto facts = guarded<ScriptFacts>([&]() -> Result<ScriptFacts> {
    ScriptNetwork network(script.value().bytes);
    ScriptFacts found;
    found.sha256 = script.value().sha256;
    found.bytes = script.value().bytes.size();
    found.signature = network.signature();
    list_tensors(network, found);
    if (auto tried = try_rows(network, input, found); !tried) return tried.error();
    return found;
  });
  if (!facts) return Error{facts.error().code, path + ": " + facts.error().message};
  return facts;
}

}  // namespace rivulet::devices
