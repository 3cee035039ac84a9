// Replaces a Gloo header that LibTorch's wheel lacks. Devices and buffers are used by pointer only.
#pragma once

namespace gloo::transport {

class Device;
class UnboundBuffer {
 public:
  virtual ~UnboundBuffer();
};

}  // namespace gloo::transport
