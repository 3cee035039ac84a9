// device.memory: compares the plan with the use of real objects.
#include <doctest/doctest.h>
#include <malloc.h>

#include <array>

#include "buffer/batch.h"
#include "runtime/node/evaluator.h"
#include "runtime/node/memory_plan.h"
#include "runtime/node/node.h"
#include "runtime/state/state_image.h"
#include "sync/round/session.h"
#include "tests/support/places.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

constexpr double mebi = 1 << 20;

/// Bytes allocated now.
double allocated() {
  const auto info = mallinfo2();
  return static_cast<double>(info.uordblks + info.hblkhd);
}

/// Objects from `make` take no more than `planned`, and not much less: an excessive plan is useless.
template <class Make>
void check_takes(double planned, double at_least, const Make& make) {
  const double before = allocated();
  const auto object = make();
  const double taken = allocated() - before;
  CAPTURE(planned);
  CAPTURE(taken);
  CHECK(taken <= planned);
  // Sanitizers have their own allocator, which mallinfo2() does not cover.
  if (std::string_view(RIVULET_SANITIZE).empty()) CHECK(taken >= at_least * planned);
}

Config linear_config(std::int64_t columns, std::uint32_t classes) {
  Config config;
  config.job.name = "t";
  config.model.name = "linear";
  config.model.classes = classes;
  config.decode.shape = {columns};
  config.source.claims = {{"t", 0}};
  config.sync.policy = "every";
  config.sync.collective = "gather";
  config.compression.policy = "none";
  return config;
}

/// The plan for a model with a known layout.
MemoryPlan plan_of(const Config& config) {
  auto plan = plan_memory(config, builtin_catalog());
  REQUIRE(plan);
  return std::move(plan).value();
}

devices::Trial last_trial;

/// A user's model, which records its trial.
const devices::ModelEntry foreign{
    "linear", "", nullptr, nullptr,
    [](const devices::ModelConfig&, const devices::Trial& trial) -> Result<devices::ModelNeeds> {
      last_trial = trial;
      return devices::ModelNeeds{};
    }};

std::pair<std::size_t, std::size_t> rows_tried(const Config& config) {
  static const std::array entries{&foreign};
  auto catalog = builtin_catalog();
  catalog.models = entries;
  REQUIRE(needs_of_model(config, catalog, {{4}, 1}));
  return {last_trial.rows_min, last_trial.rows_max};
}

struct LinearBench {
  explicit LinearBench(const Config& config)
      : plan(plan_of(config)),
        trainer(
            std::move(build_trainer(config, builtin_catalog(), {config.decode.shape, 1}, *device)).value()) {}
  devices::ModelState state() { return devices::ModelState::create(trainer->layout(), *device).value(); }
  std::unique_ptr<devices::Device> device = devices::make_host_device();
  MemoryPlan plan;
  std::unique_ptr<devices::Trainer> trainer;
};

}  // namespace

TEST_CASE("Memory: slab, batch, states, images and payloads take what the plan says, and not more") {
  auto config = linear_config(2000, 500);  // a million parameters
  config.buffer.rows = 3000;
  config.batch.max = 1000;
  config.job.devices = 3;
  LinearBench bench(config);
  const RowShape shape{config.decode.shape, 1};
  const auto& plan = bench.plan;
  const auto& layout = bench.trainer->layout();

  check_takes(plan.bytes_of("row_buffer"), 0.99,
              [&] { return buffer::RowBuffer::create(3000, shape).value(); });
  check_takes(plan.bytes_of("batch"), 0.95, [&] {
    struct Batch {
      std::unique_ptr<devices::Memory> memory;
      std::unique_ptr<buffer::Batch> batch;
    } all{bench.device->allocate_shared(std::size_t{4} * 1000 * 2001).value(), nullptr};
    const auto numbers = all.memory->view(Scalar::f32, std::size_t{1000} * 2001).as<float>();
    all.batch = std::make_unique<buffer::Batch>(numbers.first(std::size_t{1000} * 2000),
                                                numbers.subspan(std::size_t{1000} * 2000), shape, 1000);
    return all;
  });
  check_takes(plan.bytes_of("state"), 0.95, [&] { return std::pair{bench.state(), bench.state()}; });
  const AgreedState agreed{bench.state(), {1, 2}, 3, {{{0, 0}, {}}, {{0, 1}, {}}, {{0, 2}, {}}}};
  for (const auto* part : {"checkpoint", "adoption"})
    check_takes(plan.bytes_of(part), 0.9, [&] {
      return std::pair{bench.state(),
                       encode_state({"linear", "", {}}, agreed, digest_of(agreed, *bench.device).value())};
    });
  check_takes(plan.bytes_of("gradients"), 0.95, [&] {
    const std::size_t bytes = layout.contribution() * bytes_of(layout.scalar);
    return std::pair{bench.device->allocate(bytes).value(), bench.device->allocate_shared(bytes).value()};
  });
  check_takes(plan.bytes_of("payloads"), 0.95, [&] {
    std::vector<std::vector<std::byte>> by_rank(3);
    for (auto& payload : by_rank)
      payload.resize(layout.contribution() * bytes_of(layout.scalar) + sync::payload_header_bytes);
    return by_rank;
  });
}

TEST_CASE("Memory: contributions leave early only where the plan is foreseen and they are short") {
  auto config = linear_config(2000, 100);  // 0.8 MB
  config.job.devices = 3;
  check_takes(plan_of(config).bytes_of("early_payloads"), 0.95, [&] {
    const std::size_t bytes = 4 * 200'100 + sync::payload_header_bytes;
    return std::vector<std::vector<std::byte>>(3, std::vector<std::byte>(bytes));
  });
  config.sync.speculate = false;
  CHECK(plan_of(config).bytes_of("early_payloads") == 0);
  config.sync.speculate = true;
  config.decode.shape = {3000};
  CHECK(plan_of(config).bytes_of("early_payloads") == 0);  // 1.2 MB
}

TEST_CASE("Memory: held-out rows take what the plan says") {
  Config config = linear_config(784, 10);
  config.decode.shape = {1, 28, 28};
  config.evaluate.held_out_path = source_path("examples/mnist/data");
  const auto plan = plan_of(config);
  CHECK(plan.held_out_rows == 10'000);
  check_takes(plan.bytes_of("held_out_rows"), 0.6, [&] {
    return HeldOut::open(config, builtin_catalog(), config.evaluate.held_out_path, plan.held_out_rows)
        .value();
  });
}

TEST_CASE("Memory: what does not fit is refused with the whole sum and the keys that lower it") {
  auto config = linear_config(784, 10);
  CHECK(plan_of(config).check());
  config.device.memory = 40 << 20;
  config.buffer.rows = 20'000;
  const auto plan = plan_of(config);
  const auto refused = plan.check();
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::invalid_config);
  const auto& said = refused.error().message;
  INFO(said);
  CHECK(contains(said, "'device.memory' is 40.0 MiB, but this configuration needs "));
  CHECK(contains(said, "  row_buffer        61."));  // the largest first
  CHECK(said.find("row_buffer") < said.find("batch  "));
  for (const auto& part : plan.parts) CHECK(contains(said, std::string(part.key)));
  CHECK(contains(said, "  sum  "));
  config.buffer.rows = 2000;
  config.batch.max = 500;
  CHECK(plan_of(config).check());
}

TEST_CASE("Memory: a model that cannot fit is never made") {
  auto config = linear_config(10'000'000, 1'000'000);
  const double before = allocated();
  const auto plan = plan_of(config);
  CHECK(!plan.check());
  CHECK(plan.bytes_of("state") > 1e13);
  CHECK(allocated() - before < mebi);
}

TEST_CASE("Memory: the client's queue follows the stream that batches can use, and what the others leave") {
  auto config = linear_config(784, 10);
  config.batch.max = 4096;  // 41 000 rows/s, 785 bytes each
  const auto roomy = plan_of(config);
  CHECK(roomy.queue.bytes > 60'000'000);
  CHECK(roomy.queue.bytes < 70'000'000);
  bool refused = false;
  std::uint64_t last = 0;
  for (std::uint64_t cap = 16; cap <= 512; cap += 16) {
    config.device.memory = cap << 20;
    const auto plan = plan_of(config);
    CAPTURE(cap);
    refused = refused || !plan.fits();
    if (!plan.fits()) CHECK(plan.queue.bytes == 1 << 20);  // smaller is impossible
    CHECK(plan.queue.bytes >= last);
    last = plan.queue.bytes;
  }
  CHECK(refused);
  CHECK(last == roomy.queue.bytes);
}

TEST_CASE("Memory: properties that the user sets are counted, and win") {
  auto config = linear_config(784, 10);
  config.source.kafka_properties = {{"queued.max.messages.kbytes", "2000000"}};
  const auto plan = plan_of(config);
  CHECK(!plan.fits());
  CHECK(plan.bytes_of("client_queue") > 2e9);
  config.source.kafka_properties = {{"queued.max.messages.kbytes", "4096"}, {"queued.min.messages", "2000"}};
  CHECK(plan_of(config).bytes_of("client_queue") < 8 * mebi);
  const auto properties = plan_of(config).client_properties();
  CHECK(properties[0] == std::pair<std::string, std::string>{"queued.max.messages.kbytes", "4096"});
  CHECK(properties[1].second == "2000");
  config.source.type = "synthetic";
  config.job.devices = 1;
  CHECK(plan_of(config).bytes_of("client_queue") == 0);
  CHECK(plan_of(config).bytes_of("control_log") == 0);
}

TEST_CASE(
    "Memory: a model of somebody else's is tried with the fewest and the most rows that a batch may have") {
  using Rows = std::pair<std::size_t, std::size_t>;
  auto config = linear_config(4, 2);
  config.batch.min = 3;
  config.batch.max = 32;
  config.batch.rows = 64;  // of another policy
  CHECK(rows_tried(config) == Rows{3, 32});
  config.buffer.rows = 16;
  CHECK(rows_tried(config) == Rows{3, 16});
  config.batch.policy = "fixed";
  config.batch.rows = 8;
  CHECK(rows_tried(config) == Rows{8, 8});
}
