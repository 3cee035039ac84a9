// The positions of one rank's largest elements are summed by all: nothing is lost, and all ranks have the
// same bits.
#include <doctest/doctest.h>

#include "tests/support/collective_group.h"

using namespace rivulet;
using testing::CollectiveGroup;

namespace {

CollectiveGroup shared_index(std::uint32_t world, const char* root = "turns") {
  CollectiveGroup::Options options{.collective = "shared_index"};
  options.settings.set("sync.shared_index.root", std::string(root));
  return {world, std::move(options)};
}

}  // namespace

TEST_CASE("Shared index: all ranks agree on the same bits, and what is not agreed on is kept") {
  for (const char* root : {"turns", "largest"})
    for (const std::uint32_t world : {1U, 2U, 3U, 4U, 7U}) {
      CAPTURE(world);
      auto group = shared_index(world, root);
      testing::check_that_nothing_is_lost(group, 30, [](const std::vector<float>& agreed) {
        const std::size_t nonzero = testing::nonzero_of(agreed, 348);
        CHECK(nonzero <= 35);
        CHECK(nonzero >= 32);
      });
    }
}

TEST_CASE("Shared index: the root is the rank whose largest numbers are largest, where that is wanted") {
  auto group = shared_index(4, "largest");
  for (std::uint64_t round = 0; round < 8; ++round) {
    group.draw(round);
    const auto loudest = static_cast<std::uint32_t>((5 * round + 2) % 4);
    // Each has one large element, which is 0 on the others.
    for (std::uint32_t r = 0; r < 4; ++r)
      for (std::uint32_t other = 0; other < 4; ++other)
        group.mine[r][10 * (other + 1)] = other != r ? 0.0F : r == loudest ? 1000.0F : 900.0F;
    for (auto& residual : group.residuals) residual->forget();
    group.run(round);
    for (std::uint32_t r = 0; r < 4; ++r) CHECK((group.agreed[0][10 * (r + 1)] != 0) == (r == loudest));
  }
}

TEST_CASE("Shared index: a norm that is none ends it with the rank's name") {
  auto group = shared_index(2, "largest");
  group.draw(1);
  group.begin(0, 1);
  const double norm = std::nan("");
  group.ranks[1].send(0, sync::Lane::phase, std::as_bytes(std::span(&norm, 1)));
  Progress p = Progress::pending;
  for (int i = 0; i < 4 && p == Progress::pending; ++i) p = group.collectives[0]->poll();
  CHECK(p == Progress::failed);
  CHECK(group.collectives[0]->error().code == ErrorCode::protocol);
  CHECK(group.collectives[0]->error().message.find("rank 1") != std::string::npos);
}

TEST_CASE("Shared index: each rank is root once in as many rounds as there are ranks") {
  auto group = shared_index(4);
  for (std::uint64_t round = 0; round < 8; ++round) {
    group.draw(round);
    // Each has one large element, which is 0 on the others.
    for (std::uint32_t r = 0; r < 4; ++r)
      for (std::uint32_t other = 0; other < 4; ++other)
        group.mine[r][10 * (other + 1)] = other == r ? 1000.0F : 0.0F;
    for (std::uint32_t r = 0; r < 4; ++r) group.residuals[r]->forget();
    group.run(round);
    for (std::uint32_t r = 0; r < 4; ++r) CHECK((group.agreed[0][10 * (r + 1)] != 0) == (r == round % 4));
  }
}

TEST_CASE("Shared index: positions of a root that lie in no model end it with the root's rank") {
  auto group = shared_index(2);
  group.draw(1);
  group.begin(0, 1);  // rank 1 is root
  std::vector<std::byte> garbage(4096, std::byte{0xff});
  auto other = shared_index(2);  // of the size that a root sends
  other.draw(1);
  other.begin(1, 1);
  const std::size_t size = other.ranks[1].counters().bytes_sent;
  REQUIRE(size > 8);
  garbage.resize(size);
  group.ranks[1].send(0, sync::Lane::phase, garbage);
  Progress p = Progress::pending;
  for (int i = 0; i < 4 && p == Progress::pending; ++i) p = group.collectives[0]->poll();
  CHECK(p == Progress::failed);
  CHECK(group.collectives[0]->error().code == ErrorCode::protocol);
  CHECK(group.collectives[0]->error().message.find("rank 1") != std::string::npos);
}
