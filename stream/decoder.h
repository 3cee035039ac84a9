#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/record.h"
#include "core/result.h"
#include "core/row.h"
#include "core/settings.h"

namespace rivulet::stream {

/// Replacement of a missing value: an absent field, null, an empty column, or a missing-value code.
struct Fill {
  enum class Kind : std::uint8_t {
    drop,    ///< no replacement: the row is dropped
    mean,    ///< NaN, which the normalizer replaces (DecodeConfig::normalizes); a row without any value is
             ///< dropped
    last,    ///< last value of the feature in this partition; until there is one, as `mean` or else `drop`
    number,  ///< `value`
  } kind = Kind::drop;
  double value = 0;  ///< in the record's units, before scale and shift
};

/// [decode] of the configuration as plain values: keys common to all formats, and those of the chosen format.
struct DecodeConfig {
  std::string format = "raw";
  std::size_t max_record_bytes = 1'000'000;
  std::uint32_t classes = 0;        ///< > 0: number of classes, checked against targets; 0: regression
  std::vector<std::int64_t> shape;  ///< shape of a row; empty: {number of listed features}
  std::vector<double> scale = {1};  ///< x * scale + shift: one for all features, or one per feature
  std::vector<double> shift = {0};
  bool normalizes = false;      ///< a later normalizer replaces a NaN by the feature's mean
  std::vector<double> missing;  ///< missing-value codes, in the records' units
  Fill fill;
  std::string where;                     ///< "FIELD = VALUE" of the selected rows; empty selects all
  char decimal = '.';                    ///< decimal separator of numbers in texts
  std::vector<std::string> features;     ///< for formats with named features
  std::string target;                    ///< for formats with a named target
  std::vector<std::string> class_names;  ///< a label's class is its index; empty: labels are integers
  Settings settings;                     ///< values of DecoderEntry::keys
};

/// Result of one decoder step on the current record.
struct Decoded {
  enum class Kind : std::uint8_t { row, dropped, end } kind = Kind::end;
  DropReason reason = DropReason::malformed;  ///< if dropped
  std::uint32_t rows = 1;                     ///< rows consumed by this step (a malformed record drops as one
                                              ///< row)
};

/// For one feature: number of changes between consecutive rows, and how many of them rounding to 32 bits
/// alters by more than 10 %. Minimum and maximum are in the records' units.
struct Narrowing {
  double least = 0;
  double greatest = 0;
  std::uint64_t differences = 0;
  std::uint64_t lost = 0;
  double scale = 1;  ///< as configured
};

/// Decodes bytes into values. A cursor over one record, so that decoding can pause when there is no room for
/// its next row:
///   begin(record); while (next(slot).kind != end) ...
/// No row leaves a decoder with an infinity or a label outside [0, classes). The only NaN is a quiet one in a
/// feature whose value is missing, where DecodeConfig::normalizes. Never throws, never reads outside the
/// record, does not allocate for valid rows after warm-up. One thread at a time; not shared.
class Decoder {
 public:
  virtual ~Decoder() = default;
  [[nodiscard]] virtual const RowShape& shape() const noexcept = 0;
  /// Starts a record; its bytes must live until next() returns end.
  virtual void begin(const Record& record) noexcept = 0;
  /// Decodes the next row of the record into `out`. Returns a row, the reason why it was dropped, or end.
  virtual Decoded next(RowSlot out) noexcept = 0;
  /// Description of the last drop (field, value), valid until the next call. For logs, not for labels.
  [[nodiscard]] virtual std::string_view detail() const noexcept = 0;
  /// Label of the last row, as written in the record, even if the row was dropped after its label was read;
  /// empty if none was read. Returns a copy, for messages.
  [[nodiscard]] virtual std::string label() const { return {}; }
  /// Configured name of a feature, in column order; empty if it has none.
  [[nodiscard]] virtual std::string feature(std::size_t /*column*/) const { return {}; }
  /// Name of a column in messages: its feature, or its index.
  [[nodiscard]] virtual std::string column_name(std::size_t column) const {
    std::string name = feature(column);
    return name.empty() ? std::to_string(column) : name;
  }
  /// How often each feature was missing so far, whether filled or dropped: one count for each of the first
  /// 64, then one for all others. Empty if the format has no missing values.
  [[nodiscard]] virtual std::span<const std::uint64_t> missing() const noexcept { return {}; }
  /// Starts (or stops) comparing rows for narrowing(), at some cost per value. Memory: 48 bytes per feature;
  /// inactive from 65 536 features on.
  virtual void watch_narrowing(bool /*on*/) {}
  /// Results per feature since watch_narrowing(true); empty while off.
  [[nodiscard]] virtual std::span<const Narrowing> narrowing() const noexcept { return {}; }
};

/// One entry of the catalog of formats. To add a format, add a file stream/decoder/<name>.cpp that defines
/// `const DecoderEntry decoder_<name>`. The build finds it, and its keys become configuration keys.
struct DecoderEntry {
  std::string_view name;
  std::string_view help;
  /// Errors: invalid_config (names the key).
  Result<std::unique_ptr<Decoder>> (*make)(const DecodeConfig&);
  /// "decode.<name>.<key>". Keys named shape, scale, shift, features, target and classes also set fields of
  /// DecodeConfig.
  std::span<const Key> keys = {};
};

/// The compiled-in formats, sorted by name.
std::span<const DecoderEntry* const> builtin_decoders() noexcept;

}  // namespace rivulet::stream
