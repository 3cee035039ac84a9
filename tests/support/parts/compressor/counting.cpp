// Plain floats, with a count of what became of every candidate.
#include "tests/support/parts/compressor/counting.h"

#include <cstring>
#include <limits>

#include "sync/compressor/compressor.h"

namespace rivulet::testing {

CompressorCounts& compressor_counts() {
  static CompressorCounts counts;
  return counts;
}

}  // namespace rivulet::testing

namespace rivulet::sync {
namespace {

class CountingCodec final : public Compressor {
 public:
  [[nodiscard]] bool accepts(MemoryKind kind) const noexcept override { return kind != MemoryKind::device; }
  [[nodiscard]] std::size_t bytes_max(std::size_t count, Scalar) const noexcept override { return 4 * count; }
  Result<std::size_t> encode(const GradientView& in, double weight, double keep_ratio,
                             std::span<std::byte> out) override {
    ++testing::compressor_counts().encoded;
    const auto values = in.as<float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
      float v = static_cast<float>(weight * static_cast<double>(values[i]));
      if (keep_ratio == testing::poison && i == 0) v = std::numeric_limits<float>::infinity();
      std::memcpy(out.data() + 4 * i, &v, 4);
    }
    return 4 * values.size();
  }
  Status decode_add(std::span<const std::byte> bytes, const GradientView& sum) override {
    const auto into = sum.as<float>();
    if (bytes.size() != 4 * into.size())
      return Error{ErrorCode::protocol, "counting payload has a wrong length"};
    for (std::size_t i = 0; i < into.size(); ++i) {
      float v = 0;
      std::memcpy(&v, bytes.data() + 4 * i, 4);
      into[i] += v;
    }
    return ok();
  }
  void commit() noexcept override { ++testing::compressor_counts().committed; }
  void drop() noexcept override { ++testing::compressor_counts().dropped; }
};

}  // namespace
extern const CompressorEntry compressor_counting;
const CompressorEntry compressor_counting{
    "counting", 0xff02, [] { return std::unique_ptr<Compressor>(std::make_unique<CountingCodec>()); }};
}  // namespace rivulet::sync
