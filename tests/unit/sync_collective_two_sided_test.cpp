// Slices that their owners sum and compress again: nothing is lost, and all ranks have the same bits.
#include <doctest/doctest.h>

#include "tests/support/collective_group.h"

using namespace rivulet;
using testing::CollectiveGroup;

namespace {

CollectiveGroup two_sided(std::uint32_t world, const char* compressor, std::size_t buffers = 5) {
  CollectiveGroup::Options options{
      .collective = "two_sided", .compressor = compressor, .first_has_rows = false};
  options.shape.buffers = buffers;
  return {world, std::move(options)};
}

}  // namespace

TEST_CASE("Two-sided: all ranks agree on the same bits, and what is not agreed on is kept by somebody") {
  for (const char* compressor : {"topk", "random-k"})
    for (const std::uint32_t world : {1U, 2U, 3U, 4U, 7U}) {
      CAPTURE(compressor);
      CAPTURE(world);
      auto group = two_sided(world, compressor);
      std::size_t nonzero = 0;
      testing::check_that_nothing_is_lost(
          group, 40, [&](const std::vector<float>& agreed) { nonzero += testing::nonzero_of(agreed, 348); });
      // Each round synchronizes a tenth of all elements, for any number of ranks.
      CHECK(nonzero > 40 * 348 * 6 / 100);
      CHECK(nonzero < 40 * 348 * 14 / 100);
    }
}

TEST_CASE("Two-sided: sends about two slots' bytes, whatever the size of the group") {
  const auto sent_by = [](std::uint32_t world) {
    auto group = two_sided(world, "topk", 0);
    group.draw(0);
    group.run(0);
    return group.ranks[0].counters().bytes_sent;
  };
  const auto slot = [](std::uint32_t parts) {
    const sync::ContributionShape part{Scalar::f32, {348 / parts}, 0};
    return testing::compressor_named("topk").slot_bytes(part, 0.1, runtime::Config::default_settings());
  };
  CHECK(sent_by(1) == 0);
  for (const std::uint32_t world : {2U, 4U, 6U}) {
    CAPTURE(world);
    const std::uint64_t parts = 2 * (world - 1) * slot(world);
    CHECK(sent_by(world) >= parts - 2 * world * 8);
    CHECK(sent_by(world) <=
          parts + 2 * world * 16);  // a tensor divided between ranks has a scale on each side
  }
}

TEST_CASE("Two-sided: bytes of a peer that are no slot end it with the peer's rank") {
  for (const auto lane : {sync::Lane::sum, sync::Lane::phase}) {
    auto group = two_sided(2, "topk", 0);
    group.draw(0);
    group.begin(0, 0);
    const auto slot_of = [&](std::size_t from, std::size_t to) {
      sync::ContributionShape part{Scalar::f32, {}, 0};
      std::size_t at = 0;
      for (const std::size_t tensor : group.options.shape.tensors) {
        const std::size_t begin = std::max(at, from), end = std::min(at + tensor, to);
        if (begin < end) part.tensors.push_back(end - begin);
        at += tensor;
      }
      return testing::compressor_named("topk").slot_bytes(part, 0.1, group.options.settings);
    };
    std::vector<std::byte> garbage(slot_of(0, 174), std::byte{0xff}),
        of_second(slot_of(174, 348), std::byte{0xff});
    if (lane == sync::Lane::phase) std::ranges::fill(garbage, std::byte{0});
    garbage[6] = lane == sync::Lane::phase ? std::byte{0} : garbage[6];
    if (lane == sync::Lane::phase) garbage[5] = std::byte{3};  // no entries, values as i8
    group.ranks[1].send(0, sync::Lane::sum, garbage);
    group.ranks[1].send(0, sync::Lane::phase, of_second);
    Progress p = Progress::pending;
    for (int i = 0; i < 4 && p == Progress::pending; ++i) p = group.collectives[0]->poll();
    CHECK(p == Progress::failed);
    CHECK(group.collectives[0]->error().code == ErrorCode::protocol);
    CHECK(group.collectives[0]->error().message.find("rank 1") != std::string::npos);
    CHECK(group.collectives[0]->error().message.find(lane == sync::Lane::sum ? "slot of" : "sum of") == 0);
  }
}
