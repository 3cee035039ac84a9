#include "sync/collective/gloo_transport.h"

namespace rivulet::sync {

Result<Connect> make_gloo_connect(const GlooConfig&, const Clock&) {
  return Error{ErrorCode::unavailable,
               "built without LibTorch, so there is no Gloo to reach other devices with"};
}

}  // namespace rivulet::sync
