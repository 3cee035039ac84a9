#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "stream/feed/deal.h"
#include "stream/feed/window.h"

using namespace rivulet;
using namespace rivulet::stream;

namespace {

/// n empty records; record i is of class i % classes.
class Labelled final : public Dataset {
 public:
  Labelled(std::size_t n, int classes) : n_(n), classes_(classes) {}
  [[nodiscard]] std::size_t size() const noexcept override { return n_; }
  [[nodiscard]] std::span<const std::byte> value(std::size_t) const noexcept override { return {}; }
  [[nodiscard]] std::optional<int> label(std::size_t i) const noexcept override {
    return classes_ > 0 ? std::optional<int>(static_cast<int>(i) % classes_) : std::nullopt;
  }
  [[nodiscard]] const std::string& format() const noexcept override { return format_; }

 private:
  std::size_t n_;
  int classes_;
  std::string format_ = "raw";
};

}  // namespace

TEST_CASE(
    "Deal: every record goes to one partition, in proportion to the weights, the same for the same seed") {
  const Labelled data(1500, 10);
  const std::vector<double> weights{800, 400, 200, 100, 0};
  const auto dealt = feeding::deal(data, weights, 0, 3).value();
  std::set<std::uint32_t> all;
  for (std::size_t p = 0; p < 5; ++p) {
    CHECK(dealt[p].size() == static_cast<std::size_t>(weights[p]));
    all.insert(dealt[p].begin(), dealt[p].end());
  }
  CHECK(all.size() == 1500);
  CHECK_FALSE(std::is_sorted(dealt[0].begin(), dealt[0].end()));
  CHECK(dealt == feeding::deal(data, weights, 0, 3).value());
  CHECK(dealt != feeding::deal(data, weights, 0, 4).value());
}

TEST_CASE("Deal: with labels per device a partition sees that many classes, and all classes are seen") {
  const Labelled data(5000, 10);
  for (const int each : {1, 2, 3, 10, 15}) {
    CAPTURE(each);
    const auto dealt = feeding::deal(data, {1, 1, 1, 1, 1}, each, 8).value();
    std::set<int> all;
    for (const auto& records : dealt) {
      std::set<int> own;
      for (const auto i : records) own.insert(*data.label(i));
      CHECK(own.size() == static_cast<std::size_t>(std::min(each, 10)));
      all.insert(own.begin(), own.end());
    }
    CHECK(all.size() == static_cast<std::size_t>(std::min(5 * each, 10)));
  }
  CHECK(feeding::deal(data, {1, 1}, 2, 1).value() != feeding::deal(data, {1, 1}, 2, 2).value());
  const auto refused = feeding::deal(Labelled(10, 0), {1}, 2, 1);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::usage);
}

TEST_CASE("Deck: plays once, or again and again in new orders") {
  feeding::Deck once({4, 7, 9}, false, 1, 0);
  CHECK(once.draw() == 4U);
  once.put_back();
  CHECK(once.draw() == 4U);
  CHECK(once.draw() == 7U);
  CHECK_FALSE(once.finished());
  CHECK(once.draw() == 9U);
  CHECK(once.finished());
  CHECK_FALSE(once.draw().has_value());
  const auto play = [](std::uint64_t partition) {
    std::vector<std::uint32_t> records(100);
    for (std::uint32_t i = 0; i < 100; ++i) records[i] = i;
    feeding::Deck deck(std::move(records), true, 5, partition);
    std::vector<std::uint32_t> played;
    for (int i = 0; i < 300; ++i) played.push_back(deck.draw().value());
    CHECK_FALSE(deck.finished());
    return played;
  };
  const auto played = play(1);
  for (int epoch = 0; epoch < 3; ++epoch)
    CHECK(std::set(played.begin() + 100 * epoch, played.begin() + 100 * (epoch + 1)).size() == 100);
  CHECK_FALSE(std::equal(played.begin() + 100, played.begin() + 200, played.begin() + 200));
  CHECK(played == play(1));
  CHECK(played != play(2));
  feeding::Deck empty({}, true, 1, 0);
  CHECK(empty.finished());
  CHECK_FALSE(empty.draw().has_value());
}

TEST_CASE(
    "Window: never more beyond the commit than its limit, except a record that is larger than all of it") {
  feeding::Window window(100, 10'000);
  int sent = 0;
  while (window.has_room(800)) {
    window.sent(800);
    ++sent;
  }
  CHECK(sent == 11);
  CHECK(window.outstanding() <= 10'000);
  window.committed(-1);
  window.committed(50);  // an older reader's commit does not count for ours
  CHECK_FALSE(window.has_room(800));
  window.committed(101);
  CHECK(window.has_room(800));
  window.sent(800);
  CHECK_FALSE(window.has_room(800));
  window.committed(100 + 12);
  CHECK(window.outstanding() == 0);
  CHECK(window.has_room(50'000));
  window.sent(50'000);
  CHECK_FALSE(window.has_room(1));
  window.committed(1'000'000);
  CHECK(window.outstanding() == 0);
}
