#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/rng.h"
#include "stream/source.h"
#include "tests/support/assigned.h"
#include "tests/support/wait.h"

/// Guarantees of every RecordSource.
namespace rivulet::testing {

/// A source and its environment. Partitions begin empty, at offset 0; produce() adds records.
struct SourceWorld {
  virtual ~SourceWorld() = default;
  std::string name;
  std::vector<PartitionId> partitions;
  /// A new source with these offsets, 0 if not given.
  std::function<std::unique_ptr<stream::RecordSource>(const Offsets& resume)> open;
  /// Adds `n` records to each partition, or makes them due.
  std::function<void(int n)> produce;
  /// Advances the clock of sources that have their own.
  std::function<void()> wait = [] {};
  /// Advances the clock by the time in which 300 records of a new partition come due.
  std::function<void()> pass = [] {};
  /// Content of the record at an offset.
  std::function<std::string(PartitionId, std::int64_t)> value;
  /// Committed offset in the world, -1 for none; empty if it has no commits.
  std::function<std::int64_t(PartitionId)> committed;
  bool ends = false;  ///< the source ends after the produced records
  Duration poll_wait = std::chrono::milliseconds(20);
};

/// Reads, and checks all guarantees about order and views.
class SourceReader {
 public:
  SourceReader(SourceWorld& world, stream::RecordSource& source, Offsets start = {})
      : world_(world), source_(source) {
    for (const auto id : world.partitions) next_[id] = start.contains(id) ? start[id] : 0;
  }

  /// Polls once; returns the number of records.
  std::size_t poll(std::size_t most) {
    const auto records = source_.poll(most, world_.poll_wait);
    REQUIRE_MESSAGE(records, records.error().message);
    REQUIRE(records.value().size() <= most);
    for (const auto& record : records.value()) {
      REQUIRE(next_.contains(record.partition));
      // Neither a gap nor a repetition, and the bytes of exactly this record.
      REQUIRE(record.offset == next_[record.partition]);
      REQUIRE_FALSE(record.tombstone);
      const std::string text(reinterpret_cast<const char*>(record.value.data()), record.value.size());
      REQUIRE(text == world_.value(record.partition, record.offset));
      ++next_[record.partition];
    }
    if (records.value().empty()) world_.wait();
    return records.value().size();
  }

  /// Polls until every partition is at `offset`; false after too many empty polls.
  bool read_to(std::int64_t offset, std::size_t most) {
    for (int idle = 0; idle < 500;) {
      if (std::all_of(next_.begin(), next_.end(), [&](const auto& p) { return p.second >= offset; }))
        return true;
      idle = poll(most) == 0 ? idle + 1 : 0;
    }
    return false;
  }

  /// A further record would be a repetition or an invention: polls for one for a while.
  void expect_nothing() {
    for (int i = 0; i < 10; ++i) CHECK(poll(100) == 0);
  }

  Offsets& next() { return next_; }

 private:
  SourceWorld& world_;
  stream::RecordSource& source_;
  Offsets next_;
};

inline void source_gives_everything_in_order(SourceWorld& world) {
  INFO(world.name);
  auto source = world.open({});
  SourceReader reader(world, *source);
  world.produce(150);
  CHECK(reader.read_to(150, 7));
  world.produce(150);
  CHECK(reader.read_to(300, 64));
  for (const auto& [id, next] : reader.next()) CHECK(next == 300);
  if (world.ends) {
    CHECK(source->exhausted());
    reader.expect_nothing();
  } else {
    CHECK_FALSE(source->exhausted());
  }
}

inline void source_holds_back_without_room(SourceWorld& world) {
  INFO(world.name);
  auto source = world.open({});
  SourceReader reader(world, *source);
  world.produce(100);
  CHECK(reader.read_to(30, 5));
  Rng rng(7);
  for (int round = 0; round < 8; ++round) {
    for (auto i = rng.below(12); i > 0; --i) {
      const auto none = source->poll(0, world.poll_wait);
      REQUIRE(none);
      REQUIRE(none.value().empty());
      for (const auto& state : source->partitions()) CHECK(state.paused);
      world.wait();
    }
    world.produce(25);
    for (auto i = rng.below(6); i > 0; --i) reader.poll(1 + rng.below(20));
  }
  CHECK(reader.read_to(300, 50));
  for (const auto& state : source->partitions()) CHECK_FALSE(state.paused);
}

inline void source_continues_at_any_offset(SourceWorld& world) {
  INFO(world.name);
  world.produce(300);
  Offsets resume;
  for (std::size_t i = 0; i < world.partitions.size(); ++i)
    resume[world.partitions[i]] = 40 + static_cast<std::int64_t>(i);
  auto source = world.open(resume);
  SourceReader reader(world, *source, resume);
  CHECK(reader.read_to(100, 9));
  const auto seek_all = [&](std::int64_t offset) {
    std::vector<NextOffset> positions;
    for (const auto id : world.partitions) {
      positions.push_back({id, offset});
      reader.next()[id] = offset;
    }
    const Status status = seek(*source, positions);
    REQUIRE_MESSAGE(status, status.error().message);
    for (const auto& state : source->partitions()) CHECK(state.next_offset == offset);
  };
  seek_all(10);  // back, over delivered records
  CHECK(reader.read_to(60, 9));
  seek_all(200);  // forward, over undelivered records
  CHECK(reader.read_to(250, 64));
  for (int i = 0; i < 20; ++i) {  // long enough while paused
    REQUIRE(source->poll(0, world.poll_wait));
    world.wait();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  seek_all(0);
  CHECK(reader.read_to(300, 64));
  const NextOffset none[] = {{world.partitions[0], -1}};
  CHECK_FALSE(seek(*source, none));
}

inline void source_seeks_one_partition_alone(SourceWorld& world) {
  INFO(world.name);
  world.produce(300);
  auto source = world.open({});
  SourceReader reader(world, *source);
  Rng rng(11);
  for (int round = 0; round < 12; ++round) {
    for (auto i = rng.below(5); i > 0; --i) reader.poll(1 + rng.below(30));
    const auto id = world.partitions[rng.below(world.partitions.size())];
    const auto offset = static_cast<std::int64_t>(rng.below(250));
    const NextOffset position[] = {{id, offset}};
    REQUIRE(seek(*source, position));
    reader.next()[id] = offset;
  }
  CHECK(reader.read_to(300, 64));
}

/// One partition, then the other, both, and one again. Unassigned partitions are not read; the remaining one
/// continues at its position.
inline void source_gains_and_loses_partitions(SourceWorld& world) {
  INFO(world.name);
  world.produce(300);
  const PartitionId first = world.partitions[0];
  const PartitionId second = world.partitions[1];
  auto source = world.open({});
  const auto assign = [&](const Assignment& to) {
    const Status status = source->assign(to);
    REQUIRE_MESSAGE(status, status.error().message);
    REQUIRE(source->partitions().size() == to.cursors.size());
    world.pass();
  };
  SourceReader reader(world, *source);
  assign(reads({first}));
  CHECK(source->partitions()[0].id == first);
  const auto read_to = [&](const PartitionId& id, std::int64_t offset) {
    const Offsets others = reader.next();
    for (int idle = 0; idle < 500 && reader.next()[id] < offset;) idle = reader.poll(9) == 0 ? idle + 1 : 0;
    CHECK(reader.next()[id] >= offset);
    for (const auto& [other, at] : others)
      if (other != id && source->partitions().size() == 1) CHECK(reader.next()[other] == at);
  };
  read_to(first, 40);
  reader.next()[second] = 100;
  assign(reads({first, second}, {{second, 100}}));  // added: the other one continues
  CHECK(reader.read_to(150, 16));
  assign(reads({second}));  // removed
  read_to(second, 250);
  reader.next()[first] = 20;
  assign(reads({first}, {{first, 20}}));  // exchanged
  read_to(first, 60);
  assign({});
  reader.expect_nothing();
  assign(reads(world.partitions, reader.next()));
  CHECK(reader.read_to(300, 64));
}

inline void source_knows_its_partitions(SourceWorld& world) {
  INFO(world.name);
  auto source = world.open({});
  SourceReader reader(world, *source);
  REQUIRE(source->partitions().size() == world.partitions.size());
  world.produce(300);
  CHECK(reader.read_to(20, 3));
  for (int i = 0; i < 200 && source->partitions()[0].high_watermark < 300; ++i) reader.poll(1);
  for (std::size_t i = 0; i < world.partitions.size(); ++i) {
    const auto& state = source->partitions()[i];
    CHECK(state.id == world.partitions[i]);
    CHECK(state.next_offset == reader.next()[state.id]);
    CHECK(state.low_watermark == 0);
    CHECK(state.high_watermark == 300);
  }
}

inline void source_commits_are_kept(SourceWorld& world) {
  INFO(world.name);
  auto source = world.open({});
  SourceReader reader(world, *source);
  world.produce(300);
  CHECK(reader.read_to(50, 16));
  std::vector<NextOffset> positions;
  for (std::size_t i = 0; i < world.partitions.size(); ++i)
    positions.push_back({world.partitions[i], 30 + static_cast<std::int64_t>(i)});
  const Status status = source->commit(positions);
  REQUIRE_MESSAGE(status, status.error().message);
  for (int i = 0; i < 20; ++i) reader.poll(4);  // a commit is asynchronous; reading continues
  if (!world.committed) return;
  const auto all_there = [&] {
    return std::all_of(positions.begin(), positions.end(),
                       [&](const auto& p) { return world.committed(p.partition) == p.offset; });
  };
  // Each part of a commit (coordinator lookup, request) may need its deadline and a retry.
  wait_until(
      [&] {
        reader.poll(0);
        return all_there();
      },
      std::chrono::seconds(30));
  for (const auto& position : positions) CHECK(world.committed(position.partition) == position.offset);
  source.reset();
  auto again = world.open({{positions[0].partition, positions[0].offset}});
  SourceReader continued(world, *again, {{positions[0].partition, positions[0].offset}});
  CHECK(continued.read_to(60, 16));
}

/// Each check gets a new world.
inline void check_record_source(const std::function<std::unique_ptr<SourceWorld>()>& make) {
  for (auto* check :
       {source_gives_everything_in_order, source_holds_back_without_room, source_continues_at_any_offset,
        source_seeks_one_partition_alone, source_gains_and_loses_partitions, source_knows_its_partitions,
        source_commits_are_kept}) {
    const auto world = make();
    check(*world);
  }
}

}  // namespace rivulet::testing
