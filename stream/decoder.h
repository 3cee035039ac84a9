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

namespace rivulet::stream {

/// [decode] of the configuration, as plain values. Only the part of the chosen format is looked at.
struct DecodeConfig {
  std::string format = "raw";
  std::size_t max_record_bytes = 1'000'000;
  std::uint32_t classes = 0;  ///< > 0: targets are class indices and checked against it; 0: regression
  // raw: label bytes then feature bytes, rows back to back in one record
  std::string raw_label = "u8";     ///< none | u8 | i32 | i64 | f32, little-endian
  std::string raw_features = "u8";  ///< u8 | i16 | f32
  std::vector<std::int64_t> shape;  ///< of one row; json and csv derive {n} from their feature list if empty
  std::vector<float> scale = {1};   ///< x * scale + shift: one for all features; csv and json: or one each
  std::vector<float> shift = {0};
  // json: dotted paths with slices ("current[0:3]"); csv: column names or numbers
  std::vector<std::string> features;
  std::string target;
  std::vector<std::string> class_names;  ///< json and csv: a label's class is its place; empty: whole numbers
  char delimiter = ',';                  ///< csv
  std::vector<std::string> csv_columns;  ///< csv: names of the columns, if `features` uses names
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
/// `const DecoderEntry decoder_<name>`; the build finds it.
struct DecoderEntry {
  std::string_view name;
  std::string_view help;
  /// Errors: invalid_config (names the key).
  Result<std::unique_ptr<Decoder>> (*make)(const DecodeConfig&);
};

/// The formats compiled in, sorted by name.
std::span<const DecoderEntry* const> builtin_decoders() noexcept;

}  // namespace rivulet::stream
