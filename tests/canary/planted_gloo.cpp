// A second "Gloo", for a program that only tests use.
namespace gloo::transport::tcp {

struct Device {
  static int planted();
  void shutdown();
};
int Device::planted() {
  return 1;
}
void Device::shutdown() {}

}  // namespace gloo::transport::tcp
