// A second "Gloo", for a program that only tests look at.
namespace gloo {

int planted();
int planted() {
  return 1;
}

}  // namespace gloo
