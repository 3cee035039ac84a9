// The one main of every test program: a suite that checks nothing is a failure, not a success, and one that
// failed only because deadlines passed says so by its exit code.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdio>

#include "tests/support/wait.h"

namespace {

using rivulet::testing::deadline_exit;
using rivulet::testing::take_deadline_note;

int asserts_seen = 0;
std::atomic<int> findings{0};  // what is no deadline's fault
std::atomic<int> deadlines{0};

struct Verdict : doctest::IReporter {
  explicit Verdict(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override { asserts_seen = stats.numAsserts; }
  void test_case_start(const doctest::TestCaseData&) override { take_deadline_note(); }
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override { ++findings; }
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  /// Of every assertion, passed or failed: one that passes takes the note along, since it expected that wait
  /// to end so.
  void log_assert(const doctest::AssertData& data) override {
    const bool passed_deadline = take_deadline_note();
    if (data.m_failed) ++(passed_deadline ? deadlines : findings);
  }
  void log_message(const doctest::MessageData& data) override {
    if (data.m_severity != doctest::assertType::is_warn) ++findings;
  }
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("verdict", 1, Verdict);

}  // namespace

int main(int argc, char** argv) {
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (context.shouldExit()) return result;
  if (result == 0 && asserts_seen == 0) {
    std::fprintf(stderr, "no assertion was checked: this suite proves nothing\n");
    return 3;
  }
  if (result != 0 && findings == 0 && deadlines > 0) {
    std::fprintf(stderr, "only deadlines passed (%d): exit code %d\n", deadlines.load(), deadline_exit);
    return deadline_exit;
  }
  return result;
}
