// Measures the cost of the ledger: all its work in a round on one of four devices (skipped ranges, intervals,
// encoding and decoding of announcements, check, fold, share of the digest, pages), as CPU time relative to
// the LeNet-5 step of the same round. A round takes longer than its step, so this ratio is an upper limit of
// the ledger's share.
//   build/release/bench_ledger_cost [REPETITIONS]
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/model_step.h"
#include "buffer/ledger.h"
#include "core/check.h"
#include "core/clock.h"
#include "devices/device.h"
#include "runtime/state/agreed_state.h"
#include "runtime/state/announced.h"
#include "runtime/status/ledger_metrics.h"
#include "runtime/status/metrics/prometheus_sink.h"
#include "sync/message/facts.h"

using namespace rivulet;
using namespace rivulet::bench;

namespace {

constexpr std::size_t world = 4;

struct Stream {
  const char* name;
  int partitions;          ///< per device
  std::size_t rows;        ///< per device and round
  std::size_t drop_every;  ///< every N-th record is dropped; 0: none
};

double cpu_us(const std::function<void()>& work) {
  const double before = thread_cpu_seconds();
  work();
  return (thread_cpu_seconds() - before) * 1e6;
}

/// The ledger of one device's partitions, and its announcements.
struct Announcer {
  std::vector<PartitionId> partitions;
  std::vector<std::int64_t> next;
  std::size_t records = 0;
  buffer::Ledger ledger;
  buffer::Cursors stands;
  buffer::Account announced;
  std::vector<std::byte> head;
  std::vector<std::byte> section;

  Announcer(std::size_t rank, const Stream& stream) : next(static_cast<std::size_t>(stream.partitions)) {
    for (int p = 0; p < stream.partitions; ++p) {
      partitions.push_back({0, static_cast<std::int32_t>(rank) * stream.partitions + p});
      ledger.began(partitions.back(), {0, 0});
    }
  }
  /// Returns the next rows, from all partitions in turn. Records dropped rows in the ledger, as Ingest does.
  std::vector<RowTag> read(const Stream& stream) {
    std::vector<RowTag> tags;
    while (tags.size() < stream.rows) {
      const std::size_t at = records++ % partitions.size();
      const RowCursor from{next[at]++, 0};
      const RowCursor to{next[at], 0};
      if (stream.drop_every > 0 && records % stream.drop_every == 0)
        ledger.passed({partitions[at], from, to, 1, 0});
      else
        tags.push_back({{partitions[at], from}, to, 0, 0});
    }
    return tags;
  }
  /// Does the same as Worker::announce(), my_facts() and my_section().
  void announce(std::size_t rank, std::span<const RowTag> tags) {
    announced = {};
    RIVULET_CHECK(buffer::append(announced, ledger.account(tags, stands, 0).value()),
                  "the ledger does not balance");
    sync::FactsSection more;
    more.more_intervals.assign(announced.intervals.begin() + 1, announced.intervals.end());
    more.runs = announced.runs;
    section = sync::encode_section(more).value();
    sync::Facts facts;
    facts.rank = static_cast<std::uint32_t>(rank);
    facts.rows = static_cast<std::uint32_t>(tags.size());
    facts.interval = announced.intervals.front();
    facts.section_bytes = static_cast<std::uint32_t>(section.size());
    head = sync::encode_head(facts);
  }
};

/// The group, seen from its first device.
class Group {
 public:
  explicit Group(const Stream& stream)
      : stream_(stream),
        state_{devices::ModelState::create(layout(), *device_).value(), {}, 0, {}},
        metrics_(runtime::make_prometheus_sink()) {
    for (std::size_t rank = 0; rank < world; ++rank)
      all_.push_back(std::make_unique<Announcer>(rank, stream));
    pages_ = std::make_unique<runtime::LedgerMetrics>(*metrics_, status_, all_[0]->partitions, topics_);
    std::vector<std::string> members;
    for (std::size_t rank = 0; rank < world; ++rank) members.push_back("device-" + std::to_string(rank));
    view_.members = std::move(members);
  }

  /// Runs a round. Returns the CPU time of the first device's ledger in microseconds.
  double round_us() {
    for (std::size_t rank = 1; rank < world; ++rank) all_[rank]->announce(rank, all_[rank]->read(stream_));
    const double us = cpu_us([&] {
      all_[0]->announce(0, all_[0]->read(stream_));
      take_table();
      RIVULET_CHECK(runtime::check_announced(table_, view_, state_, all_[0]->partitions, topics_),
                    "invalid announcements");
      fold();
      RIVULET_CHECK(runtime::digest_of(state_, *device_), "no digest");
      pages_->publish(state_, now_);
    });
    for (auto& device : all_) settle(*device);
    now_ += std::chrono::milliseconds(100);
    return us;
  }

 private:
  /// A model of one parameter, so that the digest covers almost only the ledger.
  static devices::ModelLayout layout() {
    devices::ModelLayout one;
    one.parameters = 1;
    return one;
  }
  void take_table() {
    table_.facts.clear();
    table_.sections.clear();
    for (const auto& device : all_) {
      table_.facts.push_back(sync::decode_head(device->head).value());
      table_.sections.push_back(sync::decode_section(device->section).value());
    }
  }
  /// Does the same as Worker::fold_table().
  void fold() {
    for (std::size_t rank = 0; rank < world; ++rank) {
      const runtime::Announced announced(table_, rank);
      for (const RowInterval& rows : announced.intervals())
        runtime::fold_interval(state_, rows, announced.runs());
    }
    settle(*all_[0]);
  }
  static void settle(Announcer& device) {
    for (const RowInterval& interval : device.announced.intervals)
      device.stands[interval.partition] = interval.next;
    device.ledger.prune(device.stands);
  }

  const Stream stream_;
  std::unique_ptr<devices::Device> device_ = devices::make_host_device();
  runtime::AgreedState state_;
  std::unique_ptr<runtime::PrometheusSink> metrics_;
  runtime::NodeStatus status_;
  const std::vector<std::string> topics_{"rows"};
  std::vector<std::unique_ptr<Announcer>> all_;
  std::unique_ptr<runtime::LedgerMetrics> pages_;
  sync::ViewSpec view_;
  sync::FactsTable table_;
  TimePoint now_{};
};

void measure(const Stream& stream, int repetitions) {
  Group group(stream);
  ModelStep step(stream.rows);
  std::vector<double> books;
  std::vector<double> steps;
  std::vector<double> share;
  for (int i = 0; i < repetitions; ++i) {
    const double b = group.round_us();
    const double s = cpu_us([&] { step.run(); });
    if (i < repetitions / 10) continue;  // warm-up
    books.push_back(b);
    steps.push_back(s);
    share.push_back(100 * b / s);
  }
  fmt::print("{:38} ledger {:6.1f} us  step {:7.1f} us  share {}\n", stream.name, percentile(books, 0.5),
             percentile(steps, 0.5), spread(share, "%"));
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 500;
  devices::prepare_process(1);
  for (const Stream& stream : {Stream{"1 partition each, 20 rows", 1, 20, 0},
                               Stream{"the same, every 10th record dropped", 1, 20, 10},
                               Stream{"64 partitions each, 64 rows", 64, 64, 0},
                               Stream{"the same, every 10th record dropped", 64, 64, 10}})
    measure(stream, repetitions);
  return 0;
}
