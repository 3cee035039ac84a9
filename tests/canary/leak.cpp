// Leaks an allocation; LeakSanitizer must report it.
int main(int argc, char**) {
  int* volatile lost = new int[static_cast<unsigned>(argc) * 16];
  lost[0] = 1;
  lost = nullptr;
  return 0;
}
