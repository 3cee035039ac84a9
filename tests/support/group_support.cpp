#include "tests/support/group_support.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

namespace rivulet::testing {

void agree_on_every_batch(runtime::Config& config) {
  config.batch.policy = "stream";
  config.sync.policy = "every";
  config.sync.collective = "gather";
  config.compression.policy = "none";
  config.settings.set("train.lr_scaling.rule", std::string("none"));
}

runtime::LoadedConfig linear_job(std::uint32_t devices) {
  runtime::LoadedConfig loaded;
  auto& c = loaded.config;
  c.job.name = "lines";
  c.job.devices = devices;
  c.source.topics = {"lines"};
  c.decode.format = "raw";
  c.settings.set("decode.raw.label", std::string("f32"));
  c.settings.set("decode.raw.features", std::string("f32"));
  c.decode.shape = {8};
  c.decode.scale = {1};
  c.decode.shift = {0};
  c.model.name = "linear";
  c.model.classes = 4;
  c.train.loss = "cross_entropy";
  c.train.lr = 0.05;
  c.settings.set("train.optimizer.momentum", 0.9);
  c.buffer.rows = 2048;
  agree_on_every_batch(c);
  c.sync.on_peer_loss = "exit";  // tests with a failing device end; tests of re-forming override this
  return loaded;
}

std::unique_ptr<runtime::SimulatedGroup> build_group(const runtime::LoadedConfig& loaded,
                                                     const runtime::SimulateOptions& options,
                                                     runtime::SimulatedParts parts) {
  auto built = runtime::SimulatedGroup::build(loaded, options, std::move(parts));
  if (!built) {
    std::fprintf(stderr, "could not build the group: %s\n", built.error().message.c_str());
    std::abort();
  }
  return std::move(built).value();
}

void run_to_end(runtime::SimulatedGroup& group, const std::function<bool()>& done, double seconds) {
  constexpr std::uint64_t steps_most = 30'000'000;  // also with a stopped clock
  std::uint64_t steps = 0;
  bool is_done = false;
  group.run_until([&] {
    is_done = done();
    return is_done || ++steps > steps_most || group.seconds() > seconds;
  });
  if (is_done || group.all_ended()) return;
  FAIL("the group has not ended within ", group.seconds(), " simulated seconds and ", steps,
       " steps; device 0 is at step ", group.node(0).state().stamp.step, ": ",
       group.node(0).status().phrase());
}

}  // namespace rivulet::testing
