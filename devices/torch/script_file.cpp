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

/// Forward and backward of one row of zeros, twice: the first time the library sets itself up. In evaluation
/// mode, where batch norm takes a single row.
Status try_once(ScriptNetwork& network, std::span<const std::int64_t> input, ScriptFacts& facts) {
  std::vector<std::int64_t> shape{1};
  shape.insert(shape.end(), input.begin(), input.end());
  network.train(false);
  const RealClock clock;
  for (int i = 0; i < 2; ++i) {
    TimePoint began = clock.now();
    const torch::Tensor output = network.forward(torch::zeros(shape));
    facts.forward_ms = milliseconds(clock.now() - began);
    facts.output = output.sizes().vec();
    if (facts.output.empty() || facts.output.front() != 1)
      return Error{ErrorCode::io, "forward() of [1, ...] gives no row: its result has the shape " +
                                      std::string(c10::str(output.sizes()))};
    facts.output.erase(facts.output.begin());
    if (!output.requires_grad()) return Error{ErrorCode::io, "none of its parameters wants a gradient"};
    began = clock.now();
    output.sum().backward();
    facts.backward_ms = milliseconds(clock.now() - began);
  }
  return ok();
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
    if (auto tried = try_once(network, input, found); !tried) return tried.error();
    return found;
  });
  if (!facts) return Error{facts.error().code, path + ": " + facts.error().message};
  return facts;
}

}  // namespace rivulet::devices
