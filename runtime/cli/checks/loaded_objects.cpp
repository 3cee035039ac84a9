#include "runtime/cli/checks/loaded_objects.h"

#include <elf.h>
#include <link.h>

#include <algorithm>
#include <cstring>

namespace rivulet::runtime::cli {
namespace {

struct Search {
  std::string_view prefix;
  std::vector<std::string> found;
};

// NOLINTBEGIN(performance-no-int-to-ptr): the loader's addresses are integers.

/// Parts of an object's dynamic section needed to walk its symbols.
struct Symbols {
  const ElfW(Sym) * table = nullptr;
  const char* names = nullptr;
  const std::uint32_t* gnu_hash = nullptr;
  const std::uint32_t* sysv_hash = nullptr;
};

const ElfW(Dyn) * dynamic_section(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type == PT_DYNAMIC) {
      return reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    }
  }
  return nullptr;
}

Symbols symbols_of(const dl_phdr_info& info) {
  Symbols symbols;
  const auto* entry = dynamic_section(info);
  for (; entry != nullptr && entry->d_tag != DT_NULL; ++entry) {
    // glibc has relocated these addresses already, except in the vdso (small numbers).
    const auto address =
        entry->d_un.d_ptr < info.dlpi_addr ? info.dlpi_addr + entry->d_un.d_ptr : entry->d_un.d_ptr;
    if (entry->d_tag == DT_SYMTAB) symbols.table = reinterpret_cast<const ElfW(Sym)*>(address);
    if (entry->d_tag == DT_STRTAB) symbols.names = reinterpret_cast<const char*>(address);
    if (entry->d_tag == DT_GNU_HASH) symbols.gnu_hash = reinterpret_cast<const std::uint32_t*>(address);
    if (entry->d_tag == DT_HASH) symbols.sysv_hash = reinterpret_cast<const std::uint32_t*>(address);
  }
  return symbols;
}

// NOLINTEND(performance-no-int-to-ptr)

/// Returns the number of symbols. It is not stored; the hash tables imply it.
std::size_t count_of(const Symbols& symbols) {
  if (symbols.sysv_hash != nullptr) return symbols.sysv_hash[1];
  if (symbols.gnu_hash == nullptr) return 0;
  const std::uint32_t bucket_count = symbols.gnu_hash[0];
  const std::uint32_t first = symbols.gnu_hash[1];
  const std::uint32_t bloom_words = symbols.gnu_hash[2];
  const auto* buckets = symbols.gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / 4);
  const auto* chains = buckets + bucket_count;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < bucket_count; ++i) last = std::max(last, buckets[i]);
  if (last < first) return first;
  while ((chains[last - first] & 1U) == 0) ++last;
  return last + 1;
}

int look(dl_phdr_info* info, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  const auto symbols = symbols_of(*info);
  if (symbols.table == nullptr || symbols.names == nullptr) return 0;
  const auto count = count_of(symbols);
  for (std::size_t i = 0; i < count; ++i) {
    const auto& symbol = symbols.table[i];
    // Weak symbols are templates and inline functions, which users of a header define too.
    const bool strong = (symbol.st_info >> 4) == STB_GLOBAL && (symbol.st_info & 0xF) == STT_FUNC;
    if (strong && symbol.st_shndx != SHN_UNDEF &&
        std::strncmp(symbols.names + symbol.st_name, search.prefix.data(), search.prefix.size()) == 0) {
      search.found.emplace_back(info->dlpi_name[0] == '\0' ? "the program itself" : info->dlpi_name);
      return 0;
    }
  }
  return 0;
}

}  // namespace

std::vector<std::string> loaded_objects_defining(std::string_view prefix) {
  Search search{prefix, {}};
  ::dl_iterate_phdr(look, &search);
  return search.found;
}

}  // namespace rivulet::runtime::cli
