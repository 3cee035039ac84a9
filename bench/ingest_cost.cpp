// Measures the cost of a row of 785 bytes from Kafka to the batch. Ours: librdkafka, decoder, buffer, batches
// of 64; CPU time of the whole process, client threads included. Compared, in turns, with the rival's
// consumer with its tensors (bench/rival/consume.py, a separate process, if RIVULET_RIVAL_PYTHON names a
// Python for it), a TCP socket that receives the same bytes, a copy of them, and the LeNet-5 step per row.
// The rows are already in a real broker.
//   RIVULET_RIVAL_PYTHON=$(bench/rival/setup) build/release/bench_ingest_cost [ROUNDS]
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>

#include "bench/measure.h"
#include "bench/model_step.h"
#include "bench/sockets.h"
#include "buffer/batch.h"
#include "core/check.h"
#include "core/clock.h"
#include "runtime/ingest/ingest.h"
#include "runtime/node/memory_plan.h"
#include "runtime/node/node.h"
#include "runtime/node/node_config.h"
#include "runtime/wiring/node_dependencies.h"
#include "tests/support/kafka_server.h"
#include "tests/support/places.h"
#include "tests/support/process.h"

using namespace rivulet;
using namespace rivulet::bench;

namespace {

constexpr std::size_t row_bytes = 785;
constexpr std::size_t rows = 200'000;  ///< per measurement
constexpr std::size_t batch_rows = 64;
const std::string topic = "rows";

std::vector<std::string> made_up_rows() {
  std::vector<std::string> values(4096, std::string(row_bytes, '\0'));
  for (std::size_t i = 0; i < values.size(); ++i)
    for (std::size_t k = 0; k < row_bytes; ++k)
      values[i][k] = static_cast<char>(k == 0 ? i % 10 : (i + 7 * k) % 251);
  return values;
}

Status fill(const std::string& brokers, const std::vector<std::string>& values) {
  if (auto made = testing::create_topic(brokers, topic, 1); !made) return made;
  std::vector<testing::TestRecord> records;
  for (const auto& value : values) records.push_back({.value = value});
  for (std::size_t sent = 0; sent <= rows; sent += records.size())
    if (auto produced = testing::produce(brokers, topic, records); !produced) return produced;
  return ok();
}

runtime::LoadedConfig configuration(const std::string& brokers, const std::string& data_dir) {
  runtime::ConfigInput input;
  input.file = rivulet::testing::source_path("bench/device.toml");
  input.sets = {"job.devices=1", "source.topics=[\"" + topic + "\"]", "device.data_dir=" + data_dir,
                "source.kafka.properties.bootstrap.servers=" + brokers};
  auto loaded = runtime::load_config(input);
  for (const auto& problem : loaded.problems) fmt::print(stderr, "{}\n", problem.text());
  RIVULET_CHECK(loaded.usable(), "invalid configuration of the benchmark");
  return loaded;
}

struct NoWake final : Wake {
  void notify() noexcept override {}
};

/// The path of a row through a device, with the product's parts. One thread runs ingest and train.
class Pipeline {
 public:
  explicit Pipeline(const std::string& brokers)
      : config_(configuration(brokers, folder_.path().string()).config),
        memory_(runtime::plan_memory(config_, runtime::builtin_catalog()).value()),
        source_(runtime::open_source(config_, false, memory_, clock_, metrics_).value()),
        decoder_(runtime::build_decoder(config_, runtime::builtin_catalog()).value()),
        buffer_(config_.buffer.rows, decoder_->shape()),
        features_(batch_rows * decoder_->shape().columns()),
        targets_(batch_rows),
        batch_(features_, targets_, decoder_->shape(), batch_rows),
        partitions_(runtime::claimed_partitions(config_)) {
    assignments_.publish({{partitions_.front(), std::nullopt}});
    ledger_.began(partitions_.front(), {0, 0});
  }
  /// Takes batches until at least `count` rows have passed. Returns their number.
  std::size_t take(std::size_t count) {
    std::size_t taken = 0;
    while (taken < count) {
      (void)ingest_.step();
      RIVULET_CHECK(!ingest_.failure(), "the stream failed");
      while (buffer_.waiting() >= batch_rows && taken < count) taken += one_batch();
    }
    return taken;
  }

 private:
  std::size_t one_batch() {
    const std::size_t got = batch_.fill(buffer_, batch_rows);
    for (const RowTag& tag : batch_.own_tags())
      RIVULET_CHECK(tag.position.at.offset == next_++, "a row is missing or out of order");
    batch_.release(buffer_);
    return got;
  }

  testing::TempDir folder_;
  RealClock clock_;
  NullMetrics metrics_;
  runtime::Config config_;
  runtime::MemoryPlan memory_;
  std::unique_ptr<stream::RecordSource> source_;
  std::unique_ptr<stream::Decoder> decoder_;
  buffer::RowBuffer buffer_;
  std::vector<float> features_;
  std::vector<float> targets_;
  buffer::Batch batch_;
  std::vector<PartitionId> partitions_;
  runtime::CommittableOffsets commits_;
  buffer::Ledger ledger_;
  runtime::AssignmentSlot assignments_;
  runtime::StreamGauge gauge_;
  runtime::NodeStatus status_;
  std::unique_ptr<runtime::Logger> logger_ = runtime::make_null_logger();
  NoWake wake_;
  std::int64_t next_ = 0;
  runtime::Ingest ingest_{{.format = config_.decode.format},
                          {clock_, *source_, *decoder_, buffer_, ledger_, commits_, assignments_, gauge_,
                           status_, metrics_, *logger_, wake_}};
};

/// Returns the CPU time of the process per row after the first batch, without the client's start.
double our_us(const std::string& brokers) {
  Pipeline pipeline(brokers);
  pipeline.take(batch_rows);
  const double began = process_cpu_seconds();
  const std::size_t taken = pipeline.take(rows - batch_rows);
  return (process_cpu_seconds() - began) * 1e6 / static_cast<double>(taken);
}

/// Returns that of the rival; nullopt without its Python.
std::optional<double> rival_us(const char* python, const std::string& brokers) {
  if (python == nullptr) return std::nullopt;
  const auto ran = testing::run(
      {.command = {python, rivulet::testing::source_path("bench/rival/consume.py"), "--brokers", brokers,
                   "--topic", topic, "--rows", std::to_string(rows), "--batch", std::to_string(batch_rows)},
       .environment = {{"PYTHONDONTWRITEBYTECODE", "1"}}},
      std::chrono::seconds(120));
  if (ran.status.code != 0) fmt::print(stderr, "{}\n", ran.errors);
  RIVULET_CHECK(ran.status.code == 0, "the rival's consumer failed: see its output above");
  return std::stod(ran.output);
}

/// Returns the CPU time per row of a thread that receives the bytes in blocks that fit into a cache.
double receive_us() {
  const std::size_t bytes = rows * row_bytes;
  auto [out, in] = connected_pair();
  std::thread sender([&out, bytes] {
    const std::vector<std::byte> block(std::size_t{1} << 18U);
    for (std::size_t sent = 0; sent < bytes; sent += block.size()) send_all(out, block);
  });
  std::vector<std::byte> block(std::size_t{1} << 18U);
  const double began = thread_cpu_seconds();
  for (std::size_t got = 0; got < bytes;) got += receive_some(in, block);
  const double used = thread_cpu_seconds() - began;
  in = Socket();  // does not wait for the rest of the last block
  sender.join();
  return used * 1e6 / static_cast<double>(rows);
}

/// CPU time of one copy of the rows, from memory larger than the caches into batches.
class Copying {
 public:
  double us() {
    const double began = thread_cpu_seconds();
    for (std::size_t i = 0; i < rows; ++i)
      std::memcpy(&batch_[i % batch_rows * row_bytes], &stock_[i % held * row_bytes], row_bytes);
    const double used = thread_cpu_seconds() - began;
    RIVULET_CHECK(std::memcmp(&batch_[0], &stock_[(rows - batch_rows) % held * row_bytes], row_bytes) == 0,
                  "wrong copy of the last batch's first row");
    return used * 1e6 / static_cast<double>(rows);
  }

 private:
  static constexpr std::size_t held = 100'000;
  std::vector<char> stock_ = std::vector<char>(held * row_bytes, 'x');
  std::vector<char> batch_ = std::vector<char>(batch_rows * row_bytes);
};

void report(const char* what, const std::vector<double>& ours, const std::vector<double>& other) {
  if (!other.empty()) fmt::print("{:44} {}\n", what, spread(ratios(ours, other), "x"));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 7;
  const char* python = std::getenv("RIVULET_RIVAL_PYTHON");
  devices::prepare_process(1);
  auto kafka = testing::KafkaServer::start();
  if (!kafka) fmt::print(stderr, "{}\n", kafka.error().message);
  const std::string brokers = kafka.value()->brokers();
  const Status filled = fill(brokers, made_up_rows());
  RIVULET_CHECK(filled, "the broker rejected the rows");
  Copying copying;
  ModelStep step(batch_rows);
  std::vector<double> ours;
  std::vector<double> rival;
  std::vector<double> received;
  std::vector<double> copied;
  std::vector<double> steps;
  for (int i = 0; i < rounds; ++i) {
    ours.push_back(our_us(brokers));
    if (const auto us = rival_us(python, brokers)) rival.push_back(*us);
    received.push_back(receive_us());
    copied.push_back(copying.us());
    steps.push_back(step.us_per_row(std::chrono::milliseconds(500)));
  }
  fmt::print("ours, Kafka to batch             {}\n", spread(ours, "us of CPU per row"));
  fmt::print("the rival, Kafka to tensor       {}\n", spread(rival, "us of CPU per row"));
  fmt::print("one TCP socket, received         {}\n", spread(received, "us of CPU per row"));
  fmt::print("memcpy                           {}\n", spread(copied, "us of CPU per row"));
  fmt::print("LeNet-5 step                     {}\n", spread(steps, "us of CPU per row"));
  report("ours of the rival", ours, rival);
  report("ours of a LeNet-5 step", ours, steps);
  report("ours of received", ours, received);
  report("ours of memcpy", ours, copied);
  return 0;
}
