// Uninitialized bytes stay in the process: plants memory and searches all output.
#include "sync/transport/gloo_transport.h"
#include "tests/conformance/walls_suite.h"
#include "tests/support/planted.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

/// Output of a group over Gloo that contained planted bytes.
std::vector<std::string> leaks_of(const WallsRun& run) {
  PlantedFinds finds;
  const RealClock clock;
  const auto out = run_on_threads(run, [&](std::size_t) {
    auto connect = sync::make_gloo_connect({}, clock);
    REQUIRE(connect);
    return look_for_planted(std::move(connect).value(), finds);
  });
  for (const auto& error : out.errors) CHECK_FALSE_MESSAGE(error, error->message);
  CHECK(finds.looked_at() > 20);
  return finds.found();
}

}  // namespace

TEST_CASE("Unset bytes: what is planted is found, and only that") {
  std::vector<std::byte> bytes(100);
  CHECK_FALSE(is_planted(bytes));
  std::fill_n(bytes.begin() + 90, planted_run, planted);
  CHECK(is_planted(bytes));
  CHECK_FALSE(is_planted(std::span(bytes).first(97)));
}

TEST_CASE("Unset bytes: no message and no address over Gloo has any, whatever the group exchanges") {
  for (const char* policy : {"scripted", "exact_topk", "coarse_topk", "two_phases", "holds_every_seventh"}) {
    CAPTURE(policy);
    CHECK(leaks_of(walls_run(policy, 3, 12)) == std::vector<std::string>());
  }
  for (const char* compressor : {"dense", "random-k", "topk", "dgc", "redsync", "multi_level", "low_rank"}) {
    CAPTURE(compressor);
    auto run = even_run(8, 12);
    run.loaded.config.compression.policy = "fixed";
    run.loaded.config.settings.set("compression.compressor", std::string(compressor));
    CHECK(leaks_of(run) == std::vector<std::string>());
  }
  for (const char* collective : {"sum", "ring", "two_sided", "shared_index"}) {
    CAPTURE(collective);
    auto run = even_run(8, 12);
    const bool sparse = std::string_view(collective) != "sum" && std::string_view(collective) != "ring";
    run.loaded.config.sync.collective = collective;
    run.loaded.config.compression.policy = "fixed";
    run.loaded.config.settings.set("compression.compressor", std::string(sparse ? "topk" : "dense"));
    CHECK(leaks_of(run) == std::vector<std::string>());
  }
}
