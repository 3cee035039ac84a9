// Stands in for a Gloo header that LibTorch's wheel lacks. Devices and buffers are handled by pointer only.
#pragma once

namespace gloo::transport {

class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

}  // namespace gloo::transport
