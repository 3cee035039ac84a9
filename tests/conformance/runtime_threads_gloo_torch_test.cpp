#include "tests/conformance/threads_suite.h"

using namespace rivulet;
using namespace rivulet::testing;

TEST_CASE("Threads: three devices over Gloo train one state") {
  ThreadedParts parts;
  parts.connect = [](std::size_t, const Clock& clock) { return loopback_gloo(clock); };
  check_threads_train(3, std::move(parts));
}

TEST_CASE(
    "Threads: a device whose network is not up when the group forms ends over nothing, and comes later") {
  ThreadedParts parts;
  parts.connect = [](std::size_t device, const Clock& clock) -> sync::Connect {
    return [wires = loopback_gloo(clock), down = device == 1 ? 2 : 0](
               const sync::ViewSpec& view, sync::AddressBook& book,
               Wake& wake) mutable -> Result<std::unique_ptr<sync::Transport>> {
      if (down-- > 0) return Error{ErrorCode::unavailable, "no way to the brokers yet"};
      return wires(view, book, wake);
    };
  };
  check_threads_train(2, std::move(parts));
}
