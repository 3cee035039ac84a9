#include "stream/feeder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "stream/feed/deal.h"
#include "stream/feed/window.h"
#include "stream/kafka/committed.h"
#include "stream/kafka/producer.h"

namespace rivulet::stream {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

/// One partition's rate over time, and its backlog of due records.
struct Lane {
  double first_rate = 0;
  double second_rate = 0;
  feeding::Deck deck;
  feeding::Window window;
  double owed = 0;
  bool held_back = false;
};

/// Records due between two points of the schedule.
double due_between(const Lane& lane, const FeederConfig& config, Duration from, Duration to) {
  const Duration change = config.change_at;
  const Duration first = std::max(Duration(0), std::min(to, change) - from);
  const Duration second = std::max(Duration(0), to - std::max(from, change));
  return lane.first_rate * to_seconds(first) + lane.second_rate * to_seconds(second);
}

Status check_rates(const std::vector<double>& rates, int partitions, const char* name) {
  const auto wrong = [](std::string message) { return Error{ErrorCode::usage, std::move(message)}; };
  if (rates.size() != 1 && rates.size() != static_cast<std::size_t>(partitions))
    return wrong(fmt::format("{} {} for {} partitions: expected one for all, or one per partition",
                             rates.size(), name, partitions));
  for (const auto rate : rates)
    if (!std::isfinite(rate) || rate < 0)
      return wrong(
          fmt::format("{} in {} is invalid: expected a finite number of records/s, at least 0", rate, name));
  return ok();
}

double rate_of(const std::vector<double>& rates, int partition) {
  return rates.size() == 1 ? rates[0] : rates[static_cast<std::size_t>(partition)];
}

/// Plays until the data ends, the duration has passed or the caller stops it.
class Feeding {
 public:
  Feeding(const Dataset& data, const FeederConfig& config, const Clock& clock)
      : data_(data), config_(config), clock_(clock) {}

  Status prepare();
  Result<FeedProgress> play(const std::function<void(const FeedProgress&)>& progress,
                            const std::function<bool()>& stop);

 private:
  Status open_clients();
  Status make_lanes();
  [[nodiscard]] double weight_of(int partition) const;
  Status advance(Duration to);
  Status send_owed(int partition);
  void read_commits(TimePoint now);
  void report(Duration elapsed);
  [[nodiscard]] bool all_played() const;

  const Dataset& data_;
  const FeederConfig& config_;
  const Clock& clock_;
  int partitions_ = 0;
  int first_ = -1;  ///< partition that was served first last time
  std::unique_ptr<kafka::Producer> producer_;
  std::unique_ptr<kafka::CommittedOffsets> commits_;
  std::vector<Lane> lanes_;
  std::size_t records_dealt_ = 0;
  Duration scheduled_{0};
  TimePoint next_commit_read_{};
  FeedProgress progress_;
};

Status Feeding::prepare() {
  const auto count = partition_count(config_.properties, config_.topic, seconds(10));
  if (!count) return count.error();
  partitions_ = config_.partitions > 0 ? config_.partitions : count.value();
  if (partitions_ > count.value())
    return Error{ErrorCode::unavailable, fmt::format("topic \"{}\" has {} partitions, {} were requested",
                                                     config_.topic, count.value(), partitions_)};
  if (auto status = check_rates(config_.rates, partitions_, "rates"); !status) return status;
  if (!config_.second_rates.empty())
    if (auto status = check_rates(config_.second_rates, partitions_, "second rates"); !status) return status;
  if (auto status = open_clients(); !status) return status;
  return make_lanes();
}

Status Feeding::open_clients() {
  auto producer =
      kafka::Producer::open(config_.properties, config_.topic, "rivulet-feed", milliseconds(2), seconds(30));
  if (!producer) return producer.error();
  producer_ = std::move(producer).value();
  if (!config_.pace_by_commits) return ok();
  auto commits = kafka::CommittedOffsets::open(config_.properties, config_.pace_group);
  if (!commits) return commits.error();
  commits_ = std::move(commits).value();
  return ok();
}

/// Expected number of records of a partition, up to a common factor.
double Feeding::weight_of(int partition) const {
  const double first = rate_of(config_.rates, partition);
  if (config_.second_rates.empty()) return first;
  const double second = rate_of(config_.second_rates, partition);
  if (config_.duration == Duration::max()) return std::max(first, second);  // it may fall silent only later
  const double change = to_seconds(std::min(config_.change_at, config_.duration));
  return first * change + second * (to_seconds(config_.duration) - change);
}

Status Feeding::make_lanes() {
  std::vector<double> weights;
  weights.reserve(static_cast<std::size_t>(partitions_));
  for (int p = 0; p < partitions_; ++p) weights.push_back(weight_of(p));
  auto dealt = feeding::deal(data_, weights, config_.labels_per_device, config_.seed, config_.order);
  if (!dealt) return dealt.error();
  std::vector<std::int64_t> ends(static_cast<std::size_t>(partitions_), 0);
  if (commits_) {
    auto known = commits_->ends(config_.topic, partitions_, seconds(5));
    if (!known) return known.error();
    ends = std::move(known).value();
  }
  for (int p = 0; p < partitions_; ++p) {
    const auto i = static_cast<std::size_t>(p);
    records_dealt_ += dealt.value()[i].size();
    lanes_.push_back(
        {.first_rate = rate_of(config_.rates, p),
         .second_rate = rate_of(config_.second_rates.empty() ? config_.rates : config_.second_rates, p),
         .deck = feeding::Deck(std::move(dealt.value()[i]), config_.repeat, config_.seed, i, config_.order),
         .window = feeding::Window(ends[i], config_.window_bytes)});
  }
  progress_.per_partition.resize(lanes_.size());
  return ok();
}

Status Feeding::advance(Duration to) {
  to = std::min(to, config_.duration);
  for (auto& lane : lanes_) lane.owed += due_between(lane, config_, scheduled_, to);
  scheduled_ = to;
  // Rotate the first partition: if not all records fit, the last partition would otherwise starve.
  first_ = (first_ + 1) % partitions_;
  for (int i = 0; i < partitions_; ++i)
    if (auto status = send_owed((first_ + i) % partitions_); !status) return status;
  return ok();
}

Status Feeding::send_owed(int partition) {
  Lane& lane = lanes_[static_cast<std::size_t>(partition)];
  constexpr double tolerance = 1e-6;  // sums of small slices are inexact
  while (lane.owed >= 1 - tolerance) {
    const auto record = lane.deck.draw();
    if (!record) return ok();
    const auto value = data_.value(*record);
    if (commits_ && !lane.window.has_room(value.size())) {
      lane.deck.put_back();
      progress_.held_back += std::exchange(lane.held_back, true) ? 0 : 1;
      lane.owed = 1;  // no burst after the wait to make up for lost time
      return ok();
    }
    const auto sent = producer_->send(partition, value, unix_time_ms());
    if (!sent) return sent.error();
    if (!sent.value()) {
      lane.deck.put_back();
      return ok();
    }
    lane.held_back = false;
    lane.owed -= 1;
    if (commits_) lane.window.sent(value.size());
    ++progress_.records;
    ++progress_.per_partition[static_cast<std::size_t>(partition)];
    progress_.bytes += value.size();
  }
  return ok();
}

void Feeding::read_commits(TimePoint now) {
  if (!commits_ || now < next_commit_read_) return;
  next_commit_read_ = now + milliseconds(100);
  const auto offsets = commits_->read(config_.topic, partitions_, milliseconds(500));
  if (!offsets) return;  // the window stays as it is, and closes by itself if reading keeps failing
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].window.committed(offsets.value()[i]);
}

void Feeding::report(Duration elapsed) {
  progress_.seconds = to_seconds(elapsed);
  if (config_.duration != Duration::max())
    progress_.fraction = std::min(1.0, to_seconds(elapsed) / to_seconds(config_.duration));
  else if (!config_.repeat && records_dealt_ > 0)
    progress_.fraction = static_cast<double>(progress_.records) / static_cast<double>(records_dealt_);
}

bool Feeding::all_played() const {
  return std::all_of(lanes_.begin(), lanes_.end(), [](const auto& lane) { return lane.deck.finished(); });
}

Result<FeedProgress> Feeding::play(const std::function<void(const FeedProgress&)>& progress,
                                   const std::function<bool()>& stop) {
  const TimePoint start = clock_.now();
  TimePoint next_report = start;
  Duration elapsed{0};
  while (elapsed < config_.duration && !all_played() && !(stop && stop())) {
    if (auto status = producer_->serve(milliseconds(5)); !status) return status.error();
    const TimePoint now = clock_.now();
    elapsed = now - start;
    read_commits(now);
    if (auto status = advance(elapsed); !status) return status.error();
    if (now < next_report) continue;
    next_report = now + milliseconds(250);
    report(elapsed);
    if (progress) progress(progress_);
  }
  const Status written = producer_->flush(seconds(15));
  report(clock_.now() - start);
  if (progress) progress(progress_);
  if (!written) return written.error();
  return progress_;
}

}  // namespace

Result<FeedProgress> feed(const Dataset& data, const FeederConfig& config, const Clock& clock,
                          const std::function<void(const FeedProgress&)>& progress,
                          const std::function<bool()>& stop) {
  Feeding run(data, config, clock);
  if (auto status = run.prepare(); !status) return status.error();
  return run.play(progress, stop);
}

}  // namespace rivulet::stream
