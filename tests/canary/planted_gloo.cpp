// A second "Gloo", for a program that only tests look at.
namespace gloo::transport::tcp {

struct Device {
  static int planted();
};
int Device::planted() {
  return 1;
}

}  // namespace gloo::transport::tcp
