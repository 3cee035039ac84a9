// Thousands of views in one process leave nothing behind: three devices on real threads and Gloo connections,
// of which one loses its view again and again. The control log forgets what all have read, so that it does
// not grow either. With processes and a real Kafka: reform_torch_test.
#include <deque>
#include <mutex>
#include <thread>

#include "runtime/node/node.h"
#include "stream/open.h"
#include "sync/transport/gloo_transport.h"
#include "tests/support/effort.h"
#include "tests/support/group_support.h"
#include "tests/support/process.h"
#include "tests/support/real_node.h"
#include "tests/support/wait.h"
#include "tests/support/wrapped_transport.h"

#include <doctest/doctest.h>

#include <unistd.h>

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr std::size_t group_size = 3;

/// An in-memory log for a fixed number of readers, which keeps no record that all have read.
class PassingLog {
 public:
  std::unique_ptr<OrderedLog> open(const Clock& clock) {
    readers_.push_back(0);
    return std::make_unique<End>(*this, readers_.size() - 1, clock);
  }

 private:
  struct Record {
    std::int64_t time_ms;
    std::vector<std::byte> bytes;
  };
  class End final : public OrderedLog {
   public:
    End(PassingLog& log, std::size_t reader, const Clock& clock)
        : log_(log), reader_(reader), clock_(clock) {}
    Status append(std::span<const std::byte> bytes) override {
      const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.now().time_since_epoch());
      const std::lock_guard lock(log_.mutex_);
      log_.records_.push_back({now.count(), {bytes.begin(), bytes.end()}});
      return ok();
    }
    Result<std::span<const LogEntry>> poll(std::size_t max) override {
      const std::lock_guard lock(log_.mutex_);
      copies_.clear();
      entries_.clear();
      std::size_t& next = log_.readers_[reader_];
      for (; next < log_.first_ + log_.records_.size() && entries_.size() < max; ++next) {
        copies_.push_back(log_.records_[next - log_.first_]);
        const Record& copy = copies_.back();
        entries_.push_back({static_cast<std::int64_t>(next), copy.time_ms, copy.bytes});
      }
      log_.forget();
      return std::span<const LogEntry>(entries_);
    }
    [[nodiscard]] bool caught_up() const override { return true; }

   private:
    PassingLog& log_;
    const std::size_t reader_;
    const Clock& clock_;
    std::deque<Record> copies_;
    std::vector<LogEntry> entries_;
  };
  void forget() {
    if (readers_.size() < group_size) return;
    for (const std::size_t until = std::ranges::min(readers_); first_ < until; ++first_) records_.pop_front();
  }

  std::mutex mutex_;
  std::deque<Record> records_;
  std::size_t first_ = 0;             // offset of the oldest record
  std::vector<std::size_t> readers_;  // next offset of each
};

/// Fails once for each request.
struct Dropped final : WrappedTransport {
  Dropped(std::unique_ptr<sync::Transport> transport, std::atomic<bool>& request)
      : WrappedTransport(std::move(transport)), request(request) {}
  Progress poll(sync::Ticket ticket) override { return fails() ? Progress::failed : inner->poll(ticket); }
  bool wait(sync::Ticket ticket) override { return failed || inner->wait(ticket); }
  bool healthy() override { return !fails() && inner->healthy(); }
  [[nodiscard]] const Error& error() const override { return failed ? own : inner->error(); }
  [[nodiscard]] int lost_rank() const noexcept override { return failed ? -1 : inner->lost_rank(); }
  bool fails() { return failed = failed || request.exchange(false); }
  std::atomic<bool>& request;
  bool failed = false;
  const Error own{ErrorCode::peer_lost, "dropped by the test"};
};

std::unique_ptr<stream::RecordSource> rows_of(const runtime::Config& config, const Clock& clock) {
  stream::SyntheticSourceConfig synthetic;
  synthetic.columns = static_cast<std::size_t>(config.decode.shape.front());
  synthetic.classes = config.model.classes;
  synthetic.rows_per_second = [](TimePoint) { return 2000.0; };
  auto source = stream::open_synthetic_source(synthetic, clock);
  REQUIRE(source);
  return std::move(source).value();
}

class Views {
 public:
  Views() {
    runtime::LoadedConfig loaded = linear_job(group_size);
    loaded.config.job.devices = {2, group_size, group_size};
    loaded.config.sync.on_peer_loss = "reform";
    for (std::size_t i = 0; i < group_size; ++i) {
      const auto own = config_of_device(loaded, i);
      auto gloo = sync::make_gloo_connect({}, clock_);
      REQUIRE(gloo);
      RealNode::Outside outside{
          .source = rows_of(own.config, clock_),
          .device = nullptr,
          .log = log_.open(clock_),
          .connect = i == 0 ? dropping(std::move(gloo).value()) : std::move(gloo).value(),
          .decisions = nullptr};
      outside.rules.cool_down = false;
      nodes_.push_back(std::make_unique<RealNode>(own, runtime::RunOptions{}, runtime::builtin_catalog(),
                                                  clock_, std::move(outside)));
    }
    for (auto& node : nodes_) node->start();
  }

  /// Ends the view, and waits until all are in one again and train.
  void end_view() {
    const auto before = view();
    request_ = true;
    REQUIRE(wait_until([&] { return !request_; }, 20s));
    const auto steps = nodes_[0]->node().status().steps.load();
    REQUIRE(wait_until(
        [&] {
          return view() > before && nodes_[0]->node().status().steps.load() > steps &&
                 nodes_[0]->node().status().world.load() == group_size;
        },
        20s));
  }
  [[nodiscard]] std::uint64_t view() { return nodes_[1]->node().status().view.load(); }

 private:
  sync::Connect dropping(sync::Connect connect) {
    return [this, connect = std::move(connect)](const sync::ViewSpec& spec, sync::AddressBook& book,
                                                Wake& wake) -> Result<std::unique_ptr<sync::Transport>> {
      auto inner = connect(spec, book, wake);
      if (!inner) return inner.error();
      return std::unique_ptr<sync::Transport>(std::make_unique<Dropped>(std::move(inner).value(), request_));
    };
  }

  RealClock clock_;
  PassingLog log_;
  std::atomic<bool> request_{false};
  std::vector<std::unique_ptr<RealNode>> nodes_;
};

}  // namespace

TEST_CASE("Views: thousands in one process leave nothing behind") {
  const auto times = number_or("VIEWS", static_cast<std::uint64_t>(repetitions(120, 10'000)));
  constexpr std::uint64_t warm_up = 100;
  Views views;
  ProcessStats before;
  ProcessStats after;
  while (views.view() < times + warm_up) {
    views.end_view();
    after = read_process_stats(::getpid()).value_or(ProcessStats{});
    if (views.view() > warm_up) continue;
    before.threads = std::max(before.threads, after.threads);
    before.open_files = std::max(before.open_files, after.open_files);
    before.rss_bytes = std::max(before.rss_bytes, after.rss_bytes);
  }
  // A connection that is being closed has a descriptor for a moment.
  static_cast<void>(wait_until(
      [&] {
        after = read_process_stats(::getpid()).value_or(ProcessStats{});
        return after.open_files <= before.open_files && after.threads <= before.threads;
      },
      5s));
  const double grown = static_cast<double>(after.rss_bytes) / static_cast<double>(before.rss_bytes) - 1;
  report_figure("views in one process", static_cast<double>(views.view()), "views");
  report_figure("views: descriptors more after them", after.open_files - before.open_files, "descriptors");
  report_figure("views: threads more after them", after.threads - before.threads, "threads");
  report_figure("views: memory more after them", 100 * grown, "%");
  report_figure(
      "views: memory more, per device and view",
      static_cast<double>(after.rss_bytes - before.rss_bytes) / static_cast<double>(times * group_size),
      "bytes");
  CHECK(after.open_files <= before.open_files);
  CHECK(after.threads <= before.threads);
  // LibTorch keeps 120 bytes for every thread that has waited for a message, and a view has threads of its
  // own.
  CHECK(grown < 0.01 * std::max(1.0, static_cast<double>(times) / 1000));
}
