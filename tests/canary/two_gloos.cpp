// Linked with LibTorch and with the planted library: never run, only looked at.
namespace gloo {

int planted();

}  // namespace gloo

int main() {
  return gloo::planted();
}
