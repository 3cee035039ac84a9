#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/digest.h"
#include "core/gradient_view.h"
#include "core/record.h"
#include "core/sha256.h"
#include "runtime/state/partition_progress.h"
#include "runtime/state/state_image.h"

/// The byte format of a state image (private to state_image.cpp and read_image.cpp).
//
// Little-endian, no padding between fields:
//   head, 64 bytes: magic 8 | version u32 | sections u32 | total bytes u64 | lineage u64 | step u64 |
//                   digest low u64, high u64 | low half of XXH3-128 of the 56 bytes before it
//   section:        tag 4 | zero u32 | bytes u64 | low half of XXH3-128 of the body | body
//     "MODL"  scalar u32 (0 f32, 1 f64) | parameters u64 | buffers u64 | rows u64 | name
//     "OWNR"  bytes u32, name of the job | topics u32 | per topic: bytes u32, name
//     "MEAN"  parts u32, per part: bytes u32, subject; texts u32, per text: bytes u32, text
//     "PART"  per partition: topic u32, partition i32, start offset i64, row u32, next offset i64, row u32,
//             trained u64, shared u64, holes u64, reasons u32, per reason with dropped rows:
//             DropReason u32, rows u64; runs u32, per skipped range: from offset i64, row u32, to offset i64,
//             row u32, rows u64, fate u32
//     "PARM"  the parameters
//     "OPTA"  one per optimizer array: bytes u32, name | array
//     "BUFS"  the buffers
//     "AVRG"  optional: the average of the parameters
//     "STAT"  f64: rows in the average, usual norm of gradients, rows of a shorter window | columns u32,
//             per column f64: rows, mean, variance, shown mean, shown deviation | classes u32, per class f64:
//             rows
//     "CTRL"  optional, per controller with memory: bytes u32, name, values u32, f64 each, devices u32,
//             per device: bytes u32, name
//   SHA-256 of all bytes before it, 32 bytes
// Known sections have this order. Readers skip sections with unknown tags.
namespace rivulet::runtime::image {

static_assert(std::endian::native == std::endian::little,
              "arrays and fields are written in the byte order of memory");

inline constexpr std::string_view magic = "RVLSTATE";
inline constexpr std::size_t section_head_bytes = 24;
inline constexpr std::size_t partition_bytes = 64 + drop_reasons * 12;
inline constexpr std::size_t run_bytes = 36;
inline constexpr std::size_t hash_bytes = sizeof(Sha256);
inline constexpr std::size_t name_max = 1024;
inline constexpr std::size_t partitions_bytes_max =
    partitions_max * (partition_bytes + passed_runs_max * run_bytes);
inline constexpr std::size_t owner_bytes_max = std::size_t{1} << 20U;    // four thousand topics
inline constexpr std::size_t meaning_bytes_max = std::size_t{4} << 20U;  // a row of 100,000 named features
inline constexpr std::size_t controllers_bytes_max = std::size_t{8} << 20U;
inline constexpr std::size_t sections_max = 64;

inline std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::uint32_t number_of(Scalar scalar) {
  return scalar == Scalar::f32 ? 0 : 1;
}

inline std::uint64_t head_checksum(std::span<const std::byte> bytes) {
  return rivulet::digest_of(bytes.first(state_head_bytes - sizeof(std::uint64_t))).low;
}

}  // namespace rivulet::runtime::image
