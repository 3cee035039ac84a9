#include "tests/conformance/threads_suite.h"

using namespace rivulet::testing;

TEST_CASE("Threads: four devices over in-memory wires train one state") {
  check_threads_train(4, {});
}

TEST_CASE("Threads: one device alone trains") {
  check_threads_train(1, {});
}
