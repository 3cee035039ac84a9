#include "sync/transport/gloo_transport.h"

namespace rivulet::sync {

namespace {

Error no_gloo() {
  return {ErrorCode::unavailable,
          "connections to other devices need LibTorch's Gloo, which this build lacks"};
}

}  // namespace

Result<Connect> make_gloo_connect(GlooConfig, const Clock&) {
  return no_gloo();
}

Result<std::string> local_peer_address(const GlooConfig&) {
  return no_gloo();
}

}  // namespace rivulet::sync
