// Overflows a signed number; UndefinedBehaviorSanitizer must report it.
#include <limits>

int main(int argc, char**) {
  volatile int number = std::numeric_limits<int>::max();
  number = number + argc;
  return 0;
}
