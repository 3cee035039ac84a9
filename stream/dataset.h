#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace rivulet::stream {

/// A finite, labelled set of records in memory, with the values that they would have in a topic. IDX (MNIST's
/// four files, also .gz): value = label byte + pixel bytes (`raw`, u8/u8). CSV: one record per line. JSON
/// lines: one object per record.
class Dataset {
 public:
  virtual ~Dataset() = default;
  [[nodiscard]] virtual std::size_t size() const noexcept = 0;
  [[nodiscard]] virtual std::span<const std::byte> value(std::size_t i) const noexcept = 0;
  /// Class of record i if the format has labels (IDX); nullopt otherwise.
  [[nodiscard]] virtual std::optional<int> label(std::size_t i) const noexcept = 0;
  [[nodiscard]] virtual const std::string& format() const noexcept = 0;  ///< raw | csv | json
};

/// Order in which records are played: shuffled by a seed, or as in the data set, for streams that change.
enum class Order : std::uint8_t { shuffled, kept };

enum class Split : std::uint8_t { train, test };

/// `path`: a directory with IDX files (train-images-idx3-ubyte[.gz] ...) or one .csv / .json / .jsonl file.
/// Errors: io (names the file), bad_record (file, line or byte).
Result<std::unique_ptr<Dataset>> open_dataset(const std::string& path, Split split);

}  // namespace rivulet::stream
