#include "tests/support/places.h"

namespace rivulet::testing {

std::string source_path(const std::string& below) {
  return below.empty() ? RIVULET_SOURCE_DIR : RIVULET_SOURCE_DIR "/" + below;
}

std::string rivulet_binary() {
  return RIVULET_BINARY;
}

std::string tally_device() {
  return TALLY_DEVICE;
}

std::string paced_device() {
  return PACED_DEVICE;
}

}  // namespace rivulet::testing
