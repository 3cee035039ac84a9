// A second "Gloo", for a program that only tests look at.
namespace gloo::transport::tcp {

struct Device {
  void shutdown();
};
void Device::shutdown() {}

}  // namespace gloo::transport::tcp
