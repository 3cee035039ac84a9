#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/record.h"
#include "core/result.h"
#include "core/row.h"
#include "core/settings.h"

namespace rivulet::stream {

/// [decode] of the configuration, as plain values: what formats share, and the keys of the chosen one.
struct DecodeConfig {
  std::string format = "raw";
  std::size_t max_record_bytes = 1'000'000;
  std::uint32_t classes = 0;        ///< > 0: targets are class indices and checked against it; 0: regression
  std::vector<std::int64_t> shape;  ///< of one row; {n} of the list of features if empty
  std::vector<float> scale = {1};   ///< x * scale + shift: one for all features, or one each
  std::vector<float> shift = {0};
  std::vector<std::string> features;     ///< of formats that list them
  std::string target;                    ///< of formats that name it
  std::vector<std::string> class_names;  ///< a label's class is its place; empty: whole numbers
  Settings settings;                     ///< of DecoderEntry::keys
};

/// One step of a decoder over the current record.
struct Decoded {
  enum class Kind : std::uint8_t { row, dropped, end } kind = Kind::end;
  DropReason reason = DropReason::malformed;  ///< for dropped
  std::uint32_t rows = 1;                     ///< rows passed by this step (a broken record drops as one row)
};

/// Bytes to numbers. A cursor over one record, so that a record whose rows do not all fit can wait half read:
///   begin(record); while (next(slot).kind != end) ...
/// No row leaves a decoder with a NaN, an infinity, or a label outside [0, classes). Never throws, never
/// reads outside the record, allocates nothing per row after warm-up. One thread at a time; not shared.
class Decoder {
 public:
  virtual ~Decoder() = default;
  [[nodiscard]] virtual const RowShape& shape() const noexcept = 0;
  /// Takes the record; its bytes must live until next() said end.
  virtual void begin(const Record& record) noexcept = 0;
  /// The next row of the record into `out`, or why it was dropped, or end.
  virtual Decoded next(RowSlot out) noexcept = 0;
  /// Human words for the last dropped row (field, value), valid until the next call. For logs, not labels.
  [[nodiscard]] virtual std::string_view detail() const noexcept = 0;
  /// The label of the last row, or of one dropped after its label was read, as its record has it; empty: none
  /// was read. For people: makes a copy.
  [[nodiscard]] virtual std::string label() const { return {}; }
  /// What the configuration calls a feature, in the order of columns; empty: it has no name.
  [[nodiscard]] virtual std::string feature(std::size_t /*column*/) const { return {}; }
};

/// One entry of the catalog of formats. To add a format, add a file stream/decoder/<name>.cpp that defines
/// `const DecoderEntry decoder_<name>`; the build finds it, and its keys are configuration keys.
struct DecoderEntry {
  std::string_view name;
  std::string_view help;
  /// Errors: invalid_config (names the key).
  Result<std::unique_ptr<Decoder>> (*make)(const DecodeConfig&);
  /// "decode.<name>.<key>". Those called shape, scale, shift, features, target and classes are also the
  /// fields of DecodeConfig.
  std::span<const Key> keys = {};
};

/// The formats compiled in, sorted by name.
std::span<const DecoderEntry* const> builtin_decoders() noexcept;

}  // namespace rivulet::stream
