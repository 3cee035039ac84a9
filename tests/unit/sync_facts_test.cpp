#include "sync/message/facts.h"

#include <doctest/doctest.h>

#include <cstring>

#include "core/rng.h"

using namespace rivulet;
using namespace rivulet::sync;

namespace {

/// Each field has a different value, to detect swapped fields.
Facts distinct() {
  Facts f;
  f.view = 0x1112131415161718;
  f.round = 0x2122232425262728;
  f.step = 0x3132333435363738;
  f.rank = 0x41424344;
  f.flags = 0x51525354;
  f.rows = 0x61626364;
  f.queue_rows = 0x81828384;
  f.stream_rate = 1.0;
  f.compute_seconds = 2.0;
  f.wait_seconds = 3.0;
  f.sync_seconds = 4.0;
  f.loss_sum = 5.0;
  f.correct = 0x9192939495969798;
  f.gradient_norm2 = 6.0;
  f.rows_dropped = 0xa1a2a3a4a5a6a7a8;
  f.digest = {0xb1b2b3b4b5b6b7b8, 0xc1c2c3c4c5c6c7c8};
  f.plan_hash = 0xd1d2d3d4d5d6d7d8;
  f.rows_max = 0xe1e2e3e4;
  f.interval = {{0x01020304, 0x05060708},
                {0x1f1e1d1c1b1a1918, 0x0a0b0c0d},
                {0x2f2e2d2c2b2a2928, 0x0e0f1011},
                0x12131415,
                0x16171819,
                0x1a1b1c1d,
                0x6f6e6d6c6b6a6968};
  f.section_bytes = 40;
  f.agreed_rows = 0x3f3e3d3c3b3a3938;
  f.stop_at_step = 0x4f4e4d4c4b4a4948;
  f.stop_at_rows = 0x5f5e5d5c5b5a5958;
  return f;
}

std::string hex(std::span<const std::byte> bytes) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  for (const auto b : bytes) {
    text += digits[std::to_integer<int>(b) >> 4];
    text += digits[std::to_integer<int>(b) & 15];
  }
  return text;
}

}  // namespace

// Written by hand from the lists in facts.h: a change of these bytes changes the wire format and needs a new
// version.
TEST_CASE("Facts: the head's golden bytes") {
  Facts f = distinct();
  f.measurements = {7.0, 8.0};
  const auto head = encode_head(f);
  const std::string golden =
      "5256463108000000"  // "RVF1", version 8
      "1817161514131211"
      "2827262524232221"
      "44434241"
      "28000000"  // view, round, rank, section_bytes
      "3837363534333231"
      "38393a3b3c3d3e3f"
      "48494a4b4c4d4e4f"
      "58595a5b5c5d5e5f"  // step, agreed_rows, stop_at_step, stop_at_rows
      "64636261"
      "54535251"  // rows, flags
      "84838281"  // queue_rows
      "0000803f"
      "00000040"
      "00004040"
      "00008040"
      "0000000000001440"
      "9897969594939291"
      "0000000000001840"
      "a8a7a6a5a4a3a2a1"
      "e4e3e2e1"
      "d8d7d6d5d4d3d2d1"  // ... rows_dropped, rows_max, plan_hash
      "b8b7b6b5b4b3b2b1"
      "c8c7c6c5c4c3c2c1"  // digest
      "04030201"
      "08070605"
      "18191a1b1c1d1e1f"
      "0d0c0b0a"
      "28292a2b2c2d2e2f"
      "11100f0e"
      "15141312"
      "19181716"
      "1d1c1b1a"
      "68696a6b6c6d6e6f"  // interval
      "02000000"
      "0000e040"
      "00000041";  // measurements
  REQUIRE(head.size() == 216 + 2 * 4);
  CHECK(hex(std::span(head).first(head.size() - 8)) == golden);
  CHECK(encode_head(distinct()).size() == 216);
}

TEST_CASE("Facts: what was encoded is what is decoded") {
  Facts f = distinct();
  SUBCASE("without measurements") {}
  SUBCASE("with as many as there may be") {
    f.measurements.assign(facts_measurements_max, 0.25);
  }
  const auto back = decode_head(encode_head(f));
  REQUIRE(back);
  CHECK(back.value() == f);
}

TEST_CASE("Facts: any flipped bit, any other length, version or magic is refused") {
  const auto head = encode_head(distinct());
  for (std::size_t bit = 0; bit < head.size() * 8; ++bit) {
    auto broken = head;
    broken[bit / 8] ^= std::byte{static_cast<unsigned char>(1U << (bit % 8))};
    CHECK_FALSE(decode_head(broken));
  }
  CHECK_FALSE(decode_head(std::span(head).first(head.size() - 1)));
  Facts too_many = distinct();
  too_many.measurements.assign(facts_measurements_max + 1, 0.25);
  CHECK_FALSE(decode_head(encode_head(too_many)));
  CHECK(decode_head(std::span(head).first(0)).error().message.find("0 bytes") != std::string::npos);
}

TEST_CASE("Facts: a section round trip, unknown types are skipped, cut ones refused") {
  FactsSection section;
  section.more_intervals = {{{1, 2}, {3, 4}, {5, 6}, 7, 8, 9, 10}, {{9, 1}, {2, 3}, {4, 5}, 6, 7, 8, 9}};
  section.runs = {{{1, 2}, {3, 4}, {5, 6}, 7, 8}, {{9, 1}, {2, 3}, {4, 5}, 6, fate_hole}};
  auto bytes = encode_section(section);
  REQUIRE(bytes);
  const auto back = decode_section(bytes.value());
  REQUIRE(back);
  CHECK(back.value() == section);
  std::vector<std::byte> later = bytes.value();
  const std::uint32_t unknown[] = {999, 4, 0xdeadbeef};
  const auto* p = reinterpret_cast<const std::byte*>(unknown);
  later.insert(later.end(), p, p + sizeof unknown);
  REQUIRE(decode_section(later));
  CHECK(decode_section(later).value() == section);
  std::size_t refused = 0;
  for (std::size_t n = 1; n < bytes.value().size(); ++n)
    if (!decode_section(std::span(bytes.value()).first(n))) ++refused;
  CHECK(refused >= bytes.value().size() - 3);  // only a cut between two entries leaves a valid section
}

TEST_CASE("Facts: of as many partitions as a device may have, the longest section fits") {
  FactsSection section;
  section.more_intervals.resize(facts_partitions_max);
  section.runs.resize(facts_partitions_max * (drop_reasons + 1));
  const auto bytes = encode_section(section);
  REQUIRE(bytes);
  CHECK(bytes.value().size() > facts_section_max_bytes / 2);  // the limit is close to this maximum
  CHECK(decode_section(bytes.value()).value() == section);
}

TEST_CASE("Facts: a section over the limit is not sent") {
  FactsSection section;
  section.more_intervals.resize(facts_section_max_bytes / 40 + 1);
  CHECK_FALSE(encode_section(section));
}

TEST_CASE("Facts: random bytes never decode and never crash") {
  Rng rng(11);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> bytes(rng.below(300));
    for (auto& b : bytes) b = static_cast<std::byte>(rng.next());
    CHECK_FALSE(decode_head(bytes));
    static_cast<void>(decode_section(bytes));
  }
}
