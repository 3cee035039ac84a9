// Injected rows from a peer.
#include <cmath>

#include "core/check.h"
#include "sync/coding/rows.h"
#include "tests/fuzz/bytes.h"

namespace rivulet::fuzz {
namespace {

using namespace sync;

constexpr std::size_t rows_most = 16;

/// With and without a dictionary of values on both sides.
const RowFormat& format(bool known) {
  static const RowFormat plain{{{2, 3}, 1}, {}};
  static const RowFormat usual{{{2, 3}, 1}, {0, 0.5, 1}};
  return known ? usual : plain;
}

void check_rows(Input input, const RowFormat& rows_format) {
  const auto rows = decode_rows(input, rows_format, rows_most);
  if (!rows) {
    RIVULET_CHECK(rows.error().code == ErrorCode::protocol, "refused as what the protocol forbids");
    return;
  }
  const RowBlock& copied = rows.value();
  RIVULET_CHECK(copied.rows > 0 && copied.rows <= rows_most, "as many rows as may be");
  RIVULET_CHECK(copied.features.size() == 6 * copied.rows && copied.targets.size() == copied.rows,
                "of the job's shape");
  for (const float x : copied.features) RIVULET_CHECK(std::isfinite(x), "no row has what is not a number");
  const BatchView view{copied.features, copied.targets, copied.rows, {}};
  const auto again = decode_rows(encode_rows(view, rows_format, 100'000), rows_format, rows_most);
  RIVULET_CHECK(again && again.value().features == copied.features && again.value().targets == copied.targets,
                "rows survive");
}

void run(Input input) {
  check_rows(input, format(false));
  check_rows(input, format(true));
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const std::size_t n : {1U, 5U})
    for (const bool few : {true, false}) {
      std::vector<float> features, targets;
      for (std::size_t i = 0; i < 6 * n; ++i)
        features.push_back(few ? static_cast<float>(i % 3) / 2 : static_cast<float>(i) * 1.7F);
      for (std::size_t i = 0; i < n; ++i) targets.push_back(static_cast<float>(i));
      for (const bool known : {true, false}) {
        const auto bytes = encode_rows({features, targets, n, {}}, format(known), 100'000);
        all.emplace_back(bytes.begin(), bytes.end());
      }
    }
  return all;
}

}  // namespace

extern const Target target_rows;
const Target target_rows{"rows", run, seeds, nullptr};

}  // namespace rivulet::fuzz
