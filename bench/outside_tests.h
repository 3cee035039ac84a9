#pragma once
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace rivulet::bench {

/// The helpers of the tests REQUIRE what they do. While this lives, in a main() of its own, what fails ends
/// the program with 1 and its sentence.
class OutsideTests {
 public:
  OutsideTests() {
    context_.setAsDefaultForAssertsOutOfTestCases();
    context_.setAssertHandler(end_on_failure);
  }

 private:
  static void end_on_failure(const doctest::AssertData& data) {
    if (!data.m_failed) return;
    fmt::print(stderr, "{}:{}: {} failed: {}\n", data.m_file, data.m_line, data.m_expr,
               data.m_decomp.c_str());
    std::_Exit(1);
  }
  doctest::Context context_;
};

}  // namespace rivulet::bench
