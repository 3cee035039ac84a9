#pragma once
#include <doctest/doctest.h>

#include "core/clock.h"
#include "tests/support/group_support.h"
#include "tests/support/threaded_group.h"

namespace rivulet::testing {

/// A group on real threads trains over a transport and ends in one state. ThreadSanitizer covers Ingest,
/// Worker, SyncSession and the buffer here.
inline void check_threads_train(std::uint32_t devices, ThreadedParts parts) {
  runtime::LoadedConfig job = linear_job(devices);
  job.config.batch.tick = std::chrono::milliseconds(10);
  ThreadedGroup group(job, {.rounds = 100}, std::move(parts));
  REQUIRE(group.run(std::chrono::seconds(90)));
  std::string digest;
  for (std::size_t i = 0; i < group.size(); ++i) {
    runtime::Node& node = group.node(i);
    const auto& error = node.worker().ending().error;
    REQUIRE_MESSAGE(!error, error->message);
    CHECK(node.state().stamp.step == 100);
    CHECK(node.status().rows_trained.load() > 0);
    CHECK((node.status().digests_compared.load() > 0) ==
          (devices > 1));  // a single device compares with none
    const auto own = runtime::digest_of(node.state(), node.device());
    REQUIRE(own);
    if (i == 0) digest = own.value().hex();
    CHECK(own.value().hex() == digest);
  }
}

}  // namespace rivulet::testing
