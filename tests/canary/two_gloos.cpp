// Linked with LibTorch and both planted libraries: the doctor's report about them.
#include <iostream>

#include "runtime/cli/checks/checks.h"

namespace gloo {

int planted_for_gpus();
namespace transport::tcp {
struct Device {
  static int planted();
};
}  // namespace transport::tcp

}  // namespace gloo

int main() {
  std::cout << rivulet::runtime::cli::render_check(rivulet::runtime::cli::gloo_check(), false) << '\n';
  return gloo::planted_for_gpus() + gloo::transport::tcp::Device::planted() == 2 ? 0 : 1;
}
