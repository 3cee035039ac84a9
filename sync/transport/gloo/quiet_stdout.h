#pragma once

namespace rivulet::sync::gloo_door {

/// Gloo prints a line to std::cout whenever a mesh stands, but stdout belongs to the program. After
/// install(), what a thread writes to std::cout while it holds a QuietStdout is dropped; everything else
/// passes as before.
class QuietStdout {
 public:
  QuietStdout() noexcept;
  ~QuietStdout();
  QuietStdout(const QuietStdout&) = delete;
  QuietStdout& operator=(const QuietStdout&) = delete;
  /// Once, early: before threads that write to std::cout exist. Further calls do nothing.
  static void install();
};

}  // namespace rivulet::sync::gloo_door
