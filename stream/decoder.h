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

/// What a value that is missing becomes: an absent field, null, an empty column, a code that says so.
struct Fill {
  enum class Kind : std::uint8_t {
    drop,    ///< nothing: its row is dropped
    mean,    ///< NaN, which the normalizer replaces (DecodeConfig::normalizes); no value in a whole row:
             ///< dropped
    last,    ///< what the feature last was in this partition; as `mean` until that is known, else as `drop`
    number,  ///< `value`
  } kind = Kind::drop;
  double value = 0;  ///< as records have it, before scale and shift
};

/// [decode] of the configuration, as plain values: what formats share, and the keys of the chosen one.
struct DecodeConfig {
  std::string format = "raw";
  std::size_t max_record_bytes = 1'000'000;
  std::uint32_t classes = 0;        ///< > 0: targets are class indices and checked against it; 0: regression
  std::vector<std::int64_t> shape;  ///< of one row; {n} of the list of features if empty
  std::vector<double> scale = {1};  ///< x * scale + shift: one for all features, or one each
  std::vector<double> shift = {0};
  bool normalizes = false;      ///< a NaN becomes the feature's mean behind the decoder
  std::vector<double> missing;  ///< numbers that say that there is none, as records have them
  Fill fill;
  std::string where;                     ///< "FIELD = VALUE" of the rows that are meant; empty: all
  char decimal = '.';                    ///< of numbers in texts
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

/// Of one feature: rows in which it differs from the row before, and in how many of them 32 bits make another
/// difference of it, by more than a tenth. Least and greatest as records have it.
struct Narrowing {
  double least = 0;
  double greatest = 0;
  std::uint64_t differences = 0;
  std::uint64_t lost = 0;
  double scale = 1;  ///< as configured
};

/// Bytes to numbers. A cursor over one record, so that a record whose rows do not all fit can wait half read:
///   begin(record); while (next(slot).kind != end) ...
/// No row leaves a decoder with an infinity or a label outside [0, classes), nor with a NaN but this: where
/// DecodeConfig::normalizes, a quiet NaN in a feature is a value that is missing. Never throws, never reads
/// outside the record, allocates nothing per good row after warm-up. One thread at a time; not shared.
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
  /// What people read of a column: its feature, or where it stands.
  [[nodiscard]] virtual std::string column_name(std::size_t column) const {
    std::string name = feature(column);
    return name.empty() ? std::to_string(column) : name;
  }
  /// How often each feature was missing so far, whatever became of it: of the first 64, and behind them of
  /// all others together. Empty: the format has no such values.
  [[nodiscard]] virtual std::span<const std::uint64_t> missing() const noexcept { return {}; }
  /// Begins (or ends) to compare rows for narrowing(), which costs a look at each value. Memory: 48 bytes a
  /// feature; of 65 536 features or more nothing is compared.
  virtual void watch_narrowing(bool /*on*/) {}
  /// Of each feature, since it was watched; empty: it is not.
  [[nodiscard]] virtual std::span<const Narrowing> narrowing() const noexcept { return {}; }
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
