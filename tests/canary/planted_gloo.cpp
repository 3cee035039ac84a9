// A second "Gloo", for a program that only tests look at.
namespace gloo::transport {

int planted();
int planted() {
  return 1;
}

}  // namespace gloo::transport
