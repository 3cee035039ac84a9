// Sends only the numbers that are not zero: a payload whose length depends on the data.
#include <cstring>

#include "sync/compressor/compressor.h"

namespace rivulet::sync {
namespace {

class NonzeroCodec final : public Compressor {
 public:
  [[nodiscard]] bool accepts(MemoryKind kind) const noexcept override { return kind != MemoryKind::device; }
  [[nodiscard]] std::size_t bytes_max(std::size_t count, Scalar) const noexcept override {
    return 4 + 8 * count;
  }
  Result<std::size_t> encode(const GradientView& in, double weight, double,
                             std::span<std::byte> out) override {
    std::uint32_t kept = 0;
    const auto values = in.as<float>();
    for (std::uint32_t i = 0; i < values.size(); ++i) {
      const float v = static_cast<float>(weight * static_cast<double>(values[i]));
      if (v == 0) continue;
      std::memcpy(out.data() + 4 + 8 * kept, &i, 4);
      std::memcpy(out.data() + 8 + 8 * kept, &v, 4);
      ++kept;
    }
    std::memcpy(out.data(), &kept, 4);
    return 4 + 8 * std::size_t{kept};
  }
  Status decode_add(std::span<const std::byte> bytes, const GradientView& sum) override {
    std::uint32_t kept = 0;
    if (bytes.size() < 4) return Error{ErrorCode::protocol, "nonzero payload is too short"};
    std::memcpy(&kept, bytes.data(), 4);
    if (bytes.size() != 4 + 8 * std::size_t{kept})
      return Error{ErrorCode::protocol, "nonzero payload has a wrong length"};
    const auto into = sum.as<float>();
    for (std::uint32_t k = 0; k < kept; ++k) {
      std::uint32_t i = 0;
      float v = 0;
      std::memcpy(&i, bytes.data() + 4 + 8 * k, 4);
      std::memcpy(&v, bytes.data() + 8 + 8 * k, 4);
      if (i >= into.size()) return Error{ErrorCode::protocol, "nonzero payload names a number out of range"};
      into[i] += v;
    }
    return ok();
  }
  void commit() noexcept override {}
  void drop() noexcept override {}
};

}  // namespace
extern const CompressorEntry compressor_nonzero;
const CompressorEntry compressor_nonzero{
    "nonzero", 0xff01, [] { return std::unique_ptr<Compressor>(std::make_unique<NonzeroCodec>()); }};
}  // namespace rivulet::sync
