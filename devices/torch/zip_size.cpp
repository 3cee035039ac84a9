#include "devices/torch/zip_size.h"

#include <zip.h>

#include <algorithm>
#include <limits>
#include <memory>

namespace rivulet::devices {
namespace {

struct Discard {
  void operator()(zip_t* zip) const noexcept { ::zip_discard(zip); }
};
using Archive = std::unique_ptr<zip_t, Discard>;

/// Returns null if `bytes` is not a zip file.
Archive open_zip(std::string_view bytes) {
  if (bytes.empty()) return nullptr;  // the library would accept it as an empty archive
  zip_source_t* source = ::zip_source_buffer_create(bytes.data(), bytes.size(), 0, nullptr);
  if (source == nullptr) return nullptr;
  Archive zip(::zip_open_from_source(source, ZIP_RDONLY, nullptr));
  if (!zip) ::zip_source_free(source);  // an open archive owns it
  return zip;
}

/// Returns false if it is not a zip file or an entry lacks its name or size.
template <class Visit>
bool each_entry(std::string_view bytes, const Visit& visit) {
  const Archive zip = open_zip(bytes);
  if (!zip) return false;
  const zip_int64_t entries = ::zip_get_num_entries(zip.get(), 0);
  for (zip_int64_t i = 0; i < entries; ++i) {
    zip_stat_t entry;
    constexpr zip_uint64_t needed = ZIP_STAT_NAME | ZIP_STAT_SIZE;
    if (::zip_stat_index(zip.get(), static_cast<zip_uint64_t>(i), 0, &entry) != 0) return false;
    if ((entry.valid & needed) != needed) return false;
    visit(entry);
  }
  return true;
}

}  // namespace

std::optional<std::uint64_t> unpacked_bytes(std::string_view zip) {
  std::uint64_t sum = 0;
  const bool whole = each_entry(zip, [&](const zip_stat_t& entry) {
    sum += std::min<std::uint64_t>(entry.size, std::numeric_limits<std::uint64_t>::max() - sum);
  });
  return whole ? std::optional(sum) : std::nullopt;
}

bool has_entry(std::string_view zip, std::string_view end_of_name) {
  bool found = false;
  const bool whole = each_entry(zip, [&](const zip_stat_t& entry) {
    found = found || std::string_view(entry.name).ends_with(end_of_name);
  });
  return whole && found;
}

}  // namespace rivulet::devices
