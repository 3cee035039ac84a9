#include "devices/model_state.h"

#include "core/check.h"
#include "devices/host_memory.h"

namespace rivulet::devices {

Result<ModelState> ModelState::create(const ModelLayout& layout, Device& device) {
  const std::size_t size = bytes_of(layout.scalar);
  auto parameters = device.allocate(layout.parameters * size);
  if (!parameters) return parameters.error();
  auto momentum = device.allocate(layout.parameters * size);
  if (!momentum) return momentum.error();
  auto buffers = device.allocate(layout.buffers * size);
  if (!buffers) return buffers.error();
  ModelState state;
  state.layout_ = layout;
  state.parameters_ = std::move(parameters).value();
  state.momentum_ = std::move(momentum).value();
  state.buffers_ = std::move(buffers).value();
  return state;
}

Status ModelState::hash_into(Hasher& hasher, Device& device) const {
  for (const GradientView& own : {parameters(), momentum(), buffers()}) {
    auto host = device.to_host(own);
    if (!host) return host.error();
    hasher.add(host.value().host_bytes());
  }
  return ok();
}

void ModelState::copy_from(const ModelState& other) {
  RIVULET_CHECK(layout_.scalar == other.layout_.scalar && layout_.parameters == other.layout_.parameters &&
                    layout_.buffers == other.layout_.buffers,
                "states of different models");
  copy_host_numbers(other.parameters(), parameters());
  copy_host_numbers(other.momentum(), momentum());
  copy_host_numbers(other.buffers(), buffers());
}

}  // namespace rivulet::devices
