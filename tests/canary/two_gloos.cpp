// Linked with LibTorch and with both planted libraries: what doctor says of that.
#include <iostream>

#include "runtime/cli/checks.h"

namespace gloo {

int planted_for_gpus();
namespace transport {
int planted();
}

}  // namespace gloo

int main() {
  std::cout << rivulet::runtime::cli::render_check(rivulet::runtime::cli::gloo_check(), false) << '\n';
  return gloo::planted_for_gpus() + gloo::transport::planted() == 2 ? 0 : 1;
}
