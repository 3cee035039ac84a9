#include "runtime/http/civetweb_library.h"

#include <civetweb.h>

namespace rivulet::runtime {

void use_civetweb() {
  [[maybe_unused]] static const unsigned features = mg_init_library(0);
}

}  // namespace rivulet::runtime
