#include "tests/conformance/threads_suite.h"

using namespace rivulet;
using namespace rivulet::testing;

TEST_CASE("Threads: three devices over Gloo train one state") {
  ThreadedParts parts;
  parts.connect = [](std::size_t, const Clock& clock) { return loopback_gloo(clock); };
  check_threads_train(3, std::move(parts));
}
