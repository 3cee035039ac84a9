// The main() of every test program. A suite without checks fails.
#include <doctest/doctest.h>

#include <cstdio>

namespace {

int asserts_seen = 0;

struct Verdict : doctest::IReporter {
  explicit Verdict(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override { asserts_seen = stats.numAsserts; }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
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
  return result;
}
