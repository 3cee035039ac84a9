#include "devices/zip_size.h"

#include <algorithm>
#include <limits>

namespace rivulet::devices {
namespace {

constexpr std::uint64_t all_ones_32 = 0xFFFFFFFF;  // "the number stands in the extra field"

/// `size` bytes at `at` as a number, the lowest first; nullopt where the file has ended.
std::optional<std::uint64_t> number(std::string_view zip, std::uint64_t at, std::size_t size) {
  if (at > zip.size() || size > zip.size() - at) return std::nullopt;
  std::uint64_t out = 0;
  for (std::size_t i = size; i > 0; --i)
    out = out << 8U | static_cast<unsigned char>(zip[static_cast<std::size_t>(at) + i - 1]);
  return out;
}

bool stands_at(std::string_view zip, std::uint64_t at, std::string_view signature) {
  return at <= zip.size() && zip.substr(static_cast<std::size_t>(at)).starts_with(signature);
}

struct Directory {
  std::uint64_t begin = 0;
  std::uint64_t entries = 0;
};

std::optional<Directory> directory_at(std::string_view zip, std::uint64_t begin_at, std::uint64_t entries_at,
                                      std::size_t begin_size, std::size_t entries_size) {
  const auto begin = number(zip, begin_at, begin_size);
  const auto entries = number(zip, entries_at, entries_size);
  if (!begin || !entries) return std::nullopt;
  return Directory{*begin, *entries};
}

/// The record at the end gives where the directory is; before it may stand one with larger numbers, which
/// wins.
std::optional<Directory> find_directory(std::string_view zip) {
  constexpr std::size_t end_size = 22;
  constexpr std::size_t pointer_size = 20;
  if (zip.size() < end_size) return std::nullopt;
  const auto end = zip.rfind("PK\5\6", zip.size() - end_size);
  if (end == std::string_view::npos) return std::nullopt;
  if (end >= pointer_size && stands_at(zip, end - pointer_size, "PK\6\7")) {
    const auto large = number(zip, end - pointer_size + 8, 8);
    if (large && stands_at(zip, *large, "PK\6\6")) return directory_at(zip, *large + 48, *large + 32, 8, 8);
  }
  return directory_at(zip, end + 16, end + 10, 4, 2);
}

/// What an entry's extra field holds that its own 32 bits could not.
std::optional<std::uint64_t> large_size(std::string_view extra) {
  for (std::uint64_t at = 0;;) {
    const auto kind = number(extra, at, 2);
    const auto size = number(extra, at + 2, 2);
    if (!kind || !size) return std::nullopt;
    if (*kind == 1) return *size >= 8 ? number(extra, at + 4, 8) : std::nullopt;
    at += 4 + *size;
  }
}

struct Entry {
  std::string_view name;
  std::uint64_t unpacked = 0;
  std::uint64_t next = 0;  ///< where the one behind it begins
};

std::optional<Entry> entry_at(std::string_view zip, std::uint64_t at) {
  constexpr std::uint64_t head = 46;
  if (!stands_at(zip, at, "PK\1\2")) return std::nullopt;
  const auto unpacked = number(zip, at + 24, 4);
  const auto name = number(zip, at + 28, 2);
  const auto extra = number(zip, at + 30, 2);
  const auto comment = number(zip, at + 32, 2);
  if (!unpacked || !name || !extra || !comment) return std::nullopt;
  const std::uint64_t next = at + head + *name + *extra + *comment;
  if (next > zip.size()) return std::nullopt;
  const auto named = zip.substr(static_cast<std::size_t>(at + head), static_cast<std::size_t>(*name));
  if (*unpacked != all_ones_32) return Entry{named, *unpacked, next};
  const auto large =
      large_size(zip.substr(static_cast<std::size_t>(at + head + *name), static_cast<std::size_t>(*extra)));
  if (!large) return std::nullopt;
  return Entry{named, *large, next};
}

/// False: no zip file, or one whose directory is not whole.
template <class Visit>
bool each_entry(std::string_view zip, const Visit& visit) {
  const auto directory = find_directory(zip);
  if (!directory) return false;
  std::uint64_t at = directory->begin;
  for (std::uint64_t i = 0; i < directory->entries; ++i) {
    const auto entry = entry_at(zip, at);
    if (!entry) return false;
    visit(*entry);
    at = entry->next;
  }
  return true;
}

}  // namespace

std::optional<std::uint64_t> unpacked_bytes(std::string_view zip) {
  std::uint64_t sum = 0;
  const bool whole = each_entry(zip, [&](const Entry& entry) {
    sum += std::min(entry.unpacked, std::numeric_limits<std::uint64_t>::max() - sum);
  });
  return whole ? std::optional(sum) : std::nullopt;
}

bool has_entry(std::string_view zip, std::string_view end_of_name) {
  bool found = false;
  const bool whole =
      each_entry(zip, [&](const Entry& entry) { found = found || entry.name.ends_with(end_of_name); });
  return whole && found;
}

}  // namespace rivulet::devices
