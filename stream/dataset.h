#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace rivulet::stream {

/// A finite, labelled set of records in memory, as they would lie in a topic.
/// IDX (MNIST's four files, .gz or not): value = label byte + pixel bytes (`raw`, u8/u8). CSV: one line each.
/// JSON lines: one object each.
class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::size_t size() const noexcept = 0;
  [[nodiscard]] virtual std::span<const std::byte> value(std::size_t i) const noexcept = 0;
  /// Class of record i where the format shows it (IDX); nullopt otherwise.
  [[nodiscard]] virtual std::optional<int> label(std::size_t i) const noexcept = 0;
  [[nodiscard]] virtual const std::string& format() const noexcept = 0;  ///< raw | csv | json
};

/// In which order records are played: drawn from a seed, or as the data set has them, for streams that
/// change.
enum class Order : std::uint8_t { shuffled, kept };

enum class Split : std::uint8_t { train, test };

/// `path`: a folder with IDX files (train-images-idx3-ubyte[.gz] ...) or one .csv / .json / .jsonl file.
/// Errors: io (names the file), bad_record (file, line or byte).
Result<std::unique_ptr<Dataset>> open_dataset(const std::string& path, Split split);

}  // namespace rivulet::stream
