#pragma once
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>

namespace rivulet::bench {

/// Allows the use of test helpers, which contain REQUIRE, outside doctest. During its lifetime, a failed
/// assertion prints its message and exits with 1.
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
