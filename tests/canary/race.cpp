// Two threads increment one plain number; ThreadSanitizer must report it.
#include <thread>

int main() {
  int count = 0;
  const auto work = [&count] {
    for (int i = 0; i < 1000; ++i) ++count;
  };
  std::thread other(work);
  work();
  other.join();
  return count == 0 ? 1 : 0;
}
