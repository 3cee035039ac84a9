#include "stream/dataset.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "stream/text_records.h"

namespace rivulet::stream {
namespace {

namespace fs = std::filesystem;

/// All records in one contiguous block.
class MemoryDataset final : public Dataset {
 public:
  MemoryDataset(std::string format, std::vector<std::byte> bytes, std::vector<TextRecord> records,
                std::vector<std::uint8_t> labels)
      : format_(std::move(format)),
        bytes_(std::move(bytes)),
        records_(std::move(records)),
        labels_(std::move(labels)) {}
  [[nodiscard]] std::size_t size() const noexcept override { return records_.size(); }
  [[nodiscard]] std::span<const std::byte> value(std::size_t i) const noexcept override {
    return std::span(bytes_).subspan(records_[i].begin, records_[i].size);
  }
  [[nodiscard]] std::optional<int> label(std::size_t i) const noexcept override {
    return labels_.empty() ? std::nullopt : std::optional<int>(labels_[i]);
  }
  [[nodiscard]] const std::string& format() const noexcept override { return format_; }

 private:
  std::string format_;
  std::vector<std::byte> bytes_;
  std::vector<TextRecord> records_;
  std::vector<std::uint8_t> labels_;
};

/// Reads a file, decompressing gzip. Errors: io (names the file).
Result<std::vector<std::byte>> read_file(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return Error{ErrorCode::io, path + ": " + std::generic_category().message(errno)};
  std::vector<std::byte> bytes;
  std::size_t filled = 0;
  int got = 0;
  do {
    bytes.resize(filled + (std::size_t{1} << 20));
    got = gzread(file, bytes.data() + filled, 1U << 20U);
    filled += got > 0 ? static_cast<std::size_t>(got) : 0;
  } while (got > 0);
  bytes.resize(filled);
  int code = Z_OK;
  const std::string words = gzerror(file, &code);
  const int closed = gzclose(file);
  if (got < 0 || code != Z_OK)
    return Error{ErrorCode::io,
                 path + ": cannot be decompressed after byte " + std::to_string(filled) + ": " + words};
  if (closed != Z_OK) return Error{ErrorCode::io, path + ": ends inside the compressed data"};
  return bytes;
}

/// One IDX file of unsigned bytes: dimensions and the start of the values.
struct Idx {
  std::string path;
  std::vector<std::byte> bytes;
  std::vector<std::size_t> dimensions;
  std::size_t begin = 0;
};

std::uint32_t big_endian(std::span<const std::byte> b) {
  return std::to_integer<std::uint32_t>(b[0]) << 24U | std::to_integer<std::uint32_t>(b[1]) << 16U |
         std::to_integer<std::uint32_t>(b[2]) << 8U | std::to_integer<std::uint32_t>(b[3]);
}

Error wrong_byte(const std::string& path, std::size_t byte, const std::string& why) {
  return {ErrorCode::bad_record, path + ", byte " + std::to_string(byte) + ": " + why};
}

Result<Idx> read_idx(const std::string& path, std::size_t least_dimensions) {
  auto bytes = read_file(path);
  if (!bytes) return bytes.error();
  Idx idx{.path = path, .bytes = std::move(bytes).value()};
  const std::span<const std::byte> all(idx.bytes);
  if (all.size() < 4 || all[0] != std::byte{0} || all[1] != std::byte{0})
    return wrong_byte(path, 0, "not an IDX file (must begin with two zero bytes)");
  if (all[2] != std::byte{8}) return wrong_byte(path, 2, "not an IDX file of unsigned bytes (type 0x08)");
  const auto dimensions = std::to_integer<std::size_t>(all[3]);
  idx.begin = 4 + 4 * dimensions;
  if (dimensions < least_dimensions || dimensions > 8)
    return wrong_byte(path, 3, "unsupported IDX file with " + std::to_string(dimensions) + " dimensions");
  if (all.size() < idx.begin) return wrong_byte(path, all.size(), "the file ends inside the header");
  std::size_t expected = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    idx.dimensions.push_back(big_endian(all.subspan(4 + 4 * d, 4)));
    expected *= idx.dimensions.back();
    if (expected > (std::size_t{1} << 40))
      return wrong_byte(path, 4 + 4 * d, "the product of the dimensions exceeds 2^40");
  }
  if (all.size() - idx.begin != expected)
    return wrong_byte(path, all.size(),
                      "the header specifies " + std::to_string(expected) +
                          " bytes of values, the file contains " + std::to_string(all.size() - idx.begin));
  return idx;
}

/// The path of the file with this name, or of its .gz version; empty if there is neither.
std::string existing(const fs::path& folder, const std::string& name) {
  for (const auto* suffix : {"", ".gz"})
    if (fs::exists(folder / (name + suffix))) return (folder / (name + suffix)).string();
  return {};
}

Result<std::unique_ptr<Dataset>> open_idx(const std::string& image_path, const std::string& label_path) {
  auto images = read_idx(image_path, 2);
  if (!images) return images.error();
  auto labels = read_idx(label_path, 1);
  if (!labels) return labels.error();
  const Idx& x = images.value();
  const Idx& y = labels.value();
  const std::size_t count = x.dimensions[0];
  if (y.dimensions.size() != 1 || y.dimensions[0] != count)
    return wrong_byte(label_path, 4,
                      std::to_string(y.dimensions[0]) + " labels, but " + image_path + " has " +
                          std::to_string(count) + " images");
  const std::size_t image = count == 0 ? 0 : (x.bytes.size() - x.begin) / count;
  std::vector<std::byte> bytes(count * (image + 1));
  std::vector<TextRecord> records(count);
  std::vector<std::uint8_t> classes(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = i * (image + 1);
    bytes[at] = y.bytes[y.begin + i];
    std::copy_n(x.bytes.begin() + static_cast<std::ptrdiff_t>(x.begin + i * image), image,
                bytes.begin() + static_cast<std::ptrdiff_t>(at + 1));
    records[i] = {.begin = at, .size = image + 1};
    classes[i] = std::to_integer<std::uint8_t>(bytes[at]);
  }
  return std::unique_ptr<Dataset>(
      new MemoryDataset("raw", std::move(bytes), std::move(records), std::move(classes)));
}

Result<std::unique_ptr<Dataset>> open_text(const std::string& path, const std::string& format) {
  auto bytes = read_file(path);
  if (!bytes) return bytes.error();
  const std::string_view text(reinterpret_cast<const char*>(bytes.value().data()), bytes.value().size());
  auto records = format == "csv" ? csv_records(path, text) : json_records(path, text);
  if (!records) return records.error();
  return std::unique_ptr<Dataset>(
      new MemoryDataset(format, std::move(bytes).value(), std::move(records).value(), {}));
}

/// csv or json by file extension, with or without .gz; empty for other files.
std::string format_of(fs::path path) {
  if (path.extension() == ".gz") path = path.stem();
  const auto extension = path.extension();
  if (extension == ".csv") return "csv";
  return extension == ".json" || extension == ".jsonl" || extension == ".ndjson" ? "json" : "";
}

Result<std::unique_ptr<Dataset>> open_folder(const std::string& path, Split split) {
  const std::string prefix = split == Split::train ? "train" : "t10k";
  const auto images = existing(path, prefix + "-images-idx3-ubyte");
  const auto labels = existing(path, prefix + "-labels-idx1-ubyte");
  if (!images.empty() && !labels.empty()) return open_idx(images, labels);
  const std::string name = split == Split::train ? "train" : "test";
  for (const auto* extension : {".csv", ".jsonl", ".json"})
    if (const auto file = existing(path, name + extension); !file.empty())
      return open_text(file, format_of(file));
  return Error{ErrorCode::io, path + ": no " + prefix + "-images-idx3-ubyte and " + prefix +
                                  "-labels-idx1-ubyte (.gz or not), and no " + name +
                                  ".csv, .jsonl or .json"};
}

}  // namespace

Result<std::unique_ptr<Dataset>> open_dataset(const std::string& path, Split split) {
  std::error_code code;
  if (!fs::exists(path, code)) return Error{ErrorCode::io, path + ": no such file or folder"};
  if (fs::is_directory(path, code)) return open_folder(path, split);
  const auto format = format_of(path);
  if (!format.empty()) return open_text(path, format);
  return Error{ErrorCode::io, path + ": must be a folder or a .csv, .json or .jsonl file (.gz or not)"};
}

}  // namespace rivulet::stream
