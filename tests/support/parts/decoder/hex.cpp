// A test-only format, added by this file: rows are lines of "LABEL:" and hex bytes of features.
#include <charconv>
#include <string>

#include "stream/decoder.h"

namespace rivulet::stream {
namespace {

class HexDecoder final : public Decoder {
 public:
  explicit HexDecoder(const DecodeConfig& config) : shape_{config.shape, 1} {}
  [[nodiscard]] const RowShape& shape() const noexcept override { return shape_; }
  void begin(const Record& record) noexcept override {
    rest_ = {reinterpret_cast<const char*>(record.value.data()), record.value.size()};
  }
  Decoded next(RowSlot out) noexcept override {
    if (rest_.empty()) return {};
    const auto end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    const auto colon = line.find(':');
    if (colon == std::string_view::npos || line.size() != colon + 1 + 2 * shape_.columns())
      return {Decoded::Kind::dropped, DropReason::wrong_shape, 1};
    int label = 0;
    std::from_chars(line.data(), line.data() + colon, label);
    out.targets[0] = static_cast<float>(label);
    for (std::size_t i = 0; i < shape_.columns(); ++i) {
      int byte = 0;
      const char* at = line.data() + colon + 1 + 2 * i;
      if (std::from_chars(at, at + 2, byte, 16).ptr != at + 2)
        return {Decoded::Kind::dropped, DropReason::malformed, 1};
      out.features[i] = static_cast<float>(byte) / 255.0F;
    }
    return {Decoded::Kind::row, DropReason::malformed, 1};
  }
  [[nodiscard]] std::string_view detail() const noexcept override { return "not a hex row"; }

 private:
  const RowShape shape_;
  std::string_view rest_;
};

Result<std::unique_ptr<Decoder>> make(const DecodeConfig& config) {
  return std::unique_ptr<Decoder>(std::make_unique<HexDecoder>(config));
}

}  // namespace

extern const DecoderEntry decoder_hex;
const DecoderEntry decoder_hex{"hex", "test only: lines of LABEL:HEX", &make};

}  // namespace rivulet::stream
