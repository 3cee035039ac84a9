// Raw records. The first byte selects the types of values, the rest is the record.
#include <array>
#include <cmath>

#include "core/check.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/decoding.h"
#include "tests/support/decode_settings.h"

namespace rivulet::fuzz {
namespace {

constexpr std::uint32_t classes = 10;

struct Kind {
  const char* label;
  const char* features;
  std::size_t row_bytes;  ///< of three columns
};
constexpr std::array<Kind, 6> kinds{{{"u8", "u8", 4},
                                     {"i32", "f32", 16},
                                     {"i64", "i16", 14},
                                     {"f32", "f32", 16},
                                     {"none", "f32", 12},
                                     {"u8", "i16", 7}}};

stream::DecodeConfig config_of(const Kind& kind) {
  const bool labelled = std::string_view(kind.label) != "none";
  stream::DecodeConfig config{.classes = labelled ? classes : 0, .shape = {3}};
  testing::set_raw(config.settings, kind.label, kind.features);
  return config;
}

/// Bytes as values: a row of small integers has exactly the bytes of the record.
void check_small_numbers(const std::vector<Step>& steps, Input record) {
  for (std::size_t row = 0; row < steps.size(); ++row) {
    if (steps[row].dropped) continue;
    const Input bytes = record.subspan(row * kinds[0].row_bytes, kinds[0].row_bytes);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      const float read = steps[row].row[(i + 3) % 4];  // the label is first in the record and last in a row
      RIVULET_CHECK(read == static_cast<float>(std::to_integer<int>(bytes[i])),
                    "a byte is read as its number");
    }
  }
}

void run(Input input) {
  if (input.empty()) return;
  const std::size_t chosen = std::to_integer<std::size_t>(input.front()) % kinds.size();
  static std::array<std::unique_ptr<stream::Decoder>, kinds.size()> decoders;
  auto& decoder = decoders[chosen];
  const auto config = config_of(kinds[chosen]);
  if (!decoder) decoder = make_decoder(config);
  const Input record = input.subspan(1);
  const auto steps = read_record(*decoder, config.classes, record);
  const std::size_t rows = (record.size() + kinds[chosen].row_bytes - 1) / kinds[chosen].row_bytes;
  RIVULET_CHECK(steps.size() == std::max<std::size_t>(rows, 1), "every row is read or dropped, none twice");
  if (chosen == 0) check_small_numbers(steps, record);
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    Bytes record(1 + 3 * kinds[kind].row_bytes, std::byte{1});
    record[0] = static_cast<std::byte>(kind);
    all.push_back(std::move(record));
  }
  all.push_back(bytes_of("\x01a row that ends here"));
  return all;
}

}  // namespace

extern const Target target_raw;
const Target target_raw{"raw", run, seeds};

}  // namespace rivulet::fuzz
