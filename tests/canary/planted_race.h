#pragma once
#include <chrono>
#include <functional>
#include <string_view>
#include <thread>

#include "tests/support/group_support.h"
#include "tests/support/threaded_group.h"

namespace rivulet::testing {

/// Counts without a lock. Takes long enough for the other device to enter, also on a loaded machine, so that
/// no lock orders the two.
inline void count_without_lock(long& count) {
  ++count;
  std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ++count;
}

/// Runs two devices on threads with planted parts, optionally over Gloo; returns 0 if they trained.
/// ThreadSanitizer must prevent 0.
inline int run_planted(ThreadedParts parts, bool gloo, const char* batch_policy = "stream") {
  if (gloo) {
    parts.connect = [](std::size_t, const Clock& clock) { return loopback_gloo(clock); };
  }
  runtime::LoadedConfig job = linear_job(2);
  job.config.batch.tick = std::chrono::milliseconds(10);
  job.config.batch.policy = batch_policy;
  ThreadedGroup group(job, {.rounds = 200}, std::move(parts));
  return group.run(std::chrono::seconds(60)) ? 0 : 1;
}

}  // namespace rivulet::testing
