#include "tests/support/sim_checkers.h"

#include <fmt/format.h>

#include <unistd.h>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

namespace rivulet::testing {

Finding check_ledger(const runtime::AgreedState& state) {
  for (const auto& [id, progress] : state.partitions) {
    if (!progress.adds_up()) return fmt::format("C1: the books of partition {} do not add up", id.partition);
    if (!progress.is_explained())
      return fmt::format("C1: the ledger of partition {} is not explained by its skipped ranges",
                         id.partition);
  }
  return {};
}

Finding check_rows(const runtime::AgreedState& state, RowTable& rows, const MissingRows& missing) {
  for (const auto& [id, progress] : state.partitions) {
    RowSums expected = rows.below(id.partition, progress.next);
    if (const auto at = missing.find(id.partition); at != missing.end()) {
      expected.rows -= at->second.rows;
      expected.numbers -= at->second.numbers;
    }
    const RowSums found = sums_in(state.model, id.partition);
    if (found != expected)
      return fmt::format("C2: partition {} is at {}.{}: {} rows of sum {} were trained, not {} of {}",
                         id.partition, progress.next.offset, progress.next.row, found.rows, found.numbers,
                         expected.rows, expected.numbers);
  }
  return {};
}

int StateHistory::find(const Stamp& stamp) const {
  const auto at = names_.find(stamp);
  return at == names_.end() ? none : at->second;
}

Finding StateHistory::add(const Stamp& stamp, State state) {
  const auto [at, is_new] = names_.try_emplace(stamp, static_cast<int>(states_.size()));
  if (is_new) {
    states_.push_back(std::move(state));
    return {};
  }
  const State& known = states_[static_cast<std::size_t>(at->second)];
  if (known.digest != state.digest)
    return fmt::format("C3: state {} has digest {} here and {} there", text_of(stamp), state.digest,
                       known.digest);
  if (known.parent != state.parent)
    return fmt::format("C3: state {} has two different predecessors", text_of(stamp));
  return {};
}

bool StateHistory::extends(int later, int earlier) const {
  if (earlier == none) return true;
  while (later != none && at(later).step > at(earlier).step) later = at(later).parent;
  return later == earlier;
}

Finding check_wait(const std::string& what, Duration waited, Duration bound) {
  if (waited <= bound) return {};
  return fmt::format("C5: {} took more than {} s", what, to_seconds(bound));
}

ProcessUse use_of_this_process() {
  namespace fs = std::filesystem;
  const auto entries = [](const char* folder) {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
  };
  std::ifstream statm("/proc/self/statm");
  std::size_t size = 0;
  std::size_t resident = 0;
  statm >> size >> resident;
  statm.close();
  return {entries("/proc/self/fd"), entries("/proc/self/task"),
          resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE))};
}

Finding check_use(const ProcessUse& before, const ProcessUse& after, std::size_t bytes_more) {
  if (after.descriptors > before.descriptors)
    return fmt::format("C6: {} descriptors, {} before", after.descriptors, before.descriptors);
  if (after.threads > before.threads)
    return fmt::format("C6: {} threads, {} before", after.threads, before.threads);
  if (after.resident_bytes > before.resident_bytes + bytes_more)
    return fmt::format("C6: {} bytes of memory, {} before", after.resident_bytes, before.resident_bytes);
  return {};
}

Finding check_descriptors(const std::string& device, std::size_t open) {
  if (open == 0) return {};
  return fmt::format("C6: {} has ended and left {} files open", device, open);
}

Finding check_private(std::span<const std::byte> bytes, const char* where) {
  const bool found = memmem(bytes.data(), bytes.size(), &sim_row_label, sizeof sim_row_label) != nullptr;
  return found ? fmt::format("C7: bytes of a row are in {}", where) : "";
}

Finding FoldTable::add(std::int64_t next_offset, const std::string& hash) {
  const auto [at, is_new] = hashes_.try_emplace(next_offset, hash);
  compared_ += is_new ? 0 : 1;
  if (at->second == hash) return {};
  return fmt::format("C8: two folds of the log below {} differ", next_offset);
}

Finding check_loss(double loss, double without_faults, double factor) {
  if (loss <= without_faults * factor && without_faults <= loss * factor) return {};
  return fmt::format("C9: loss {} with faults, {} without", loss, without_faults);
}

}  // namespace rivulet::testing
