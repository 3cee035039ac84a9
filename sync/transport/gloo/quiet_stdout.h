#pragma once

namespace rivulet::sync::gloo_door {

/// Keeps Gloo's output off stdout, which belongs to the program: Gloo prints a line to std::cout for each
/// connected mesh. After install(), output of a thread to std::cout is dropped while it holds a QuietStdout.
/// All other output passes unchanged.
class QuietStdout {
 public:
  QuietStdout() noexcept;
  ~QuietStdout();
  QuietStdout(const QuietStdout&) = delete;
  QuietStdout& operator=(const QuietStdout&) = delete;
  /// Call once, before other threads write to std::cout. Further calls do nothing.
  static void install();
};

}  // namespace rivulet::sync::gloo_door
