// Injected rows on a device: which rows it sends, and how it uses those of others.
#include "runtime/train/injected_rows.h"

#include <doctest/doctest.h>

#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "sync/controllers/injection.h"

using namespace rivulet;
using namespace rivulet::runtime;

namespace {

const RowShape shape{{2}, 1};
const sync::RowFormat rows_format{shape, {}};

/// Rows whose features and target identify them.
struct Rows {
  explicit Rows(std::vector<float> names) : targets(std::move(names)) {
    for (const float name : targets) features.insert(features.end(), {name, -name});
  }
  [[nodiscard]] BatchView view() const { return {features, targets, targets.size(), {}}; }
  std::vector<float> features, targets;
};

sync::ViewSpec view_of(std::uint32_t devices) {
  std::vector<std::string> names;
  for (std::uint32_t i = 0; i < devices; ++i) names.push_back("device-" + std::to_string(i));
  return {.number = 1, .token = 1, .members = SharedList<std::string>(names), .rank = 0};
}

/// Rows from each peer; those of rank 0 are unused.
class Sent {
 public:
  explicit Sent(const std::vector<std::vector<float>>& of_rank) {
    for (const auto& rows : of_rank)
      bytes_.push_back(rows.empty() ? std::vector<std::byte>()
                                    : sync::encode_rows(Rows(rows).view(), rows_format, 10'000));
  }
  [[nodiscard]] std::vector<sync::ParcelExchange::Received> parcels() const {
    std::vector<sync::ParcelExchange::Received> all;
    for (std::uint32_t rank = 1; rank < bytes_.size(); ++rank) all.push_back({rank, bytes_[rank]});
    return all;
  }
  std::vector<std::vector<std::byte>> bytes_;
};

struct Lending {
  std::vector<float> features = std::vector<float>(64), targets = std::vector<float>(32);
  buffer::RowBuffer buffer{64, shape};
  buffer::Batch batch{features, targets, shape, 32};

  /// Targets of the injected rows in a batch of N own rows.
  std::vector<float> lent(InjectedRows& copies, std::size_t own, double part) {
    for (std::size_t i = 0; i < own; ++i) {
      const RowSlot slot = buffer.claim();
      slot.targets[0] = 9;
      buffer.publish({{{0, 0}, {next, 0}}, {next + 1, 0}, 0});
      ++next;
    }
    buffer.flush();
    batch.fill(buffer, own);
    copies.inject(batch, part);
    std::vector<float> all;
    for (std::size_t i = own; i < batch.rows(); ++i) all.push_back(batch.view().targets[i]);
    batch.release(buffer);
    return all;
  }
  std::int64_t next = 0;
};

}  // namespace

TEST_CASE("Injected rows: each row that was trained is as likely as any other to be given") {
  std::map<float, int> given;
  std::vector<float> names(1000);
  std::iota(names.begin(), names.end(), 0.0F);
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    InjectedRows copies(rows_format, 0, seed);
    for (std::size_t at = 0; at < names.size(); at += 50)
      copies.offer(Rows({names.begin() + static_cast<std::ptrdiff_t>(at),
                         names.begin() + static_cast<std::ptrdiff_t>(at + 50)})
                       .view(),
                   40);  // the last ten are injected
    const auto parcels = copies.draw(10, 3, 1);
    REQUIRE(parcels.size() == 3);
    CHECK(parcels[1].empty());
    std::set<float> once;
    for (const std::uint32_t peer : {0U, 2U}) {
      const auto rows = sync::decode_rows(parcels[peer], rows_format, 10);
      REQUIRE(rows);
      REQUIRE(rows.value().rows == 10);
      for (std::size_t i = 0; i < 10; ++i) {
        once.insert(rows.value().targets[i]);
        ++given[rows.value().targets[i]];
        CHECK(rows.value().features[2 * i + 1] == -rows.value().targets[i]);
      }
    }
    CHECK(once.size() == 20);  // different rows for each
    CHECK(copies.draw(10, 3, 1)[0].empty());
  }
  int early = 0, late = 0;
  for (const auto& [name, times] : given) {
    CHECK(static_cast<int>(name) % 50 < 40);
    (name < 500 ? early : late) += times;
  }
  CHECK(early + late == 300 * 20);
  CHECK(std::abs(early - late) < 400);  // 77 is a standard deviation
}

TEST_CASE("Injected rows: all peers' in turn, a number for each own row, and again from the first") {
  InjectedRows copies(rows_format, 10, 1);
  Lending to;
  CHECK(to.lent(copies, 4, 0.5).empty());
  REQUIRE(copies.receive(Sent({{9}, {1, 2, 3}, {}, {5}}).parcels(), view_of(4)));
  CHECK(to.lent(copies, 4, 0.5) == std::vector<float>{1, 5});
  CHECK(to.lent(copies, 4, 0.5) == std::vector<float>{2, 3});
  CHECK(to.lent(copies, 4, 0.5) == std::vector<float>{1, 5});
  CHECK(to.lent(copies, 4, 0).empty());
  // With less than one per step, some steps have one.
  std::size_t all = 0;
  for (int i = 0; i < 9; ++i) all += to.lent(copies, 1, 1.0 / 3).size();
  CHECK(all == 3);
  // A round without rows from peers changes nothing; new rows replace the old.
  REQUIRE(copies.receive(Sent({{}, {}, {}, {}}).parcels(), view_of(4)));
  CHECK(to.lent(copies, 2, 1).size() == 2);
  REQUIRE(copies.receive(Sent({{}, {8}, {}, {}}).parcels(), view_of(4)));
  CHECK(to.lent(copies, 3, 1) == std::vector<float>{8, 8, 8});
  copies.begin();
  CHECK(to.lent(copies, 3, 1).empty());
}

TEST_CASE("Injected rows: never more than a batch has room for") {
  InjectedRows copies(rows_format, 10, 1);
  Lending to;
  REQUIRE(copies.receive(Sent({{}, {1}}).parcels(), view_of(2)));
  CHECK(to.lent(copies, 30, 5).size() == 2);
  CHECK(to.lent(copies, 1, 0.01).size() <= 31);
}

TEST_CASE("Injected rows: what a peer sends instead of rows ends with its name") {
  InjectedRows copies(rows_format, 10, 1);
  Sent cut({{}, {1}, {2}});
  cut.bytes_[2].pop_back();
  auto refused = copies.receive(cut.parcels(), view_of(3));
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("device-2") != std::string::npos);
  for (const float label : {10.0F, -1.0F, 0.5F}) {
    refused = copies.receive(Sent({{}, {3, label}, {}}).parcels(), view_of(3));
    REQUIRE_FALSE(refused);
    CHECK(refused.error().message.find("device-1") != std::string::npos);
    CHECK(refused.error().message.find("label") != std::string::npos);
  }
  InjectedRows of_numbers(rows_format, 0, 1);
  CHECK(of_numbers.receive(Sent({{}, {0.5F}, {}}).parcels(), view_of(3)));
}

TEST_CASE("Injected rows: who has too few rows gives the same to several") {
  InjectedRows copies(rows_format, 0, 1);
  copies.offer(Rows({1, 2, 3}).view(), 3);
  const auto parcels = copies.draw(2, 4, 0);
  for (const std::uint32_t peer : {1U, 2U, 3U}) {
    const auto rows = sync::decode_rows(parcels[peer], rows_format, 2);
    REQUIRE(rows);
    CHECK(rows.value().rows == 2);
  }
}

TEST_CASE("Injected rows: few of large rows are held") {
  CHECK(InjectedRows::rows_held({{1, 28, 28}, 1}) == sync::policy::injected_rows_max);
  CHECK(InjectedRows::rows_held({{3, 224, 224}, 1}) == 1);
}
