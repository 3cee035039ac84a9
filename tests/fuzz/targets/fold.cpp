// A whole control log, one record per line, from its first record: every device that reads it has the same
// fold, and every record preserves its invariants.
#include "core/check.h"
#include "sync/membership/log_reader.h"
#include "tests/fuzz/bytes.h"
#include "tests/fuzz/log_bytes.h"

namespace rivulet::fuzz {
namespace {

using namespace sync::membership;

constexpr std::size_t records_max = 200;

Fold fold_all(std::string_view log, bool check) {
  LogReader reader(fuzzed_job);
  std::int64_t offset = 0;
  for (std::size_t n = 0; n < records_max && !log.empty(); ++n, offset += offset_step) {
    const std::string_view line = log.substr(0, log.find('\n'));
    log.remove_prefix(std::min(log.size(), line.size() + 1));
    const Fold before = check ? reader.fold() : Fold{};
    reader.take({offset, offset, std::as_bytes(std::span(line))});
    if (!check) continue;
    check_fold(reader.fold());
    check_goes_on(before, reader.fold());
  }
  return reader.fold();
}

void run(Input input) {
  const std::string_view log = text_of(input);
  const Fold fold = fold_all(log, true);
  RIVULET_CHECK(fold == fold_all(log, false), "a fold is a function of its log");
  check_snapshot(fold);
}

std::vector<Bytes> seeds() {
  Bytes whole;
  std::vector<Bytes> all;
  for (const auto& record : records_of_a_life()) {
    append(whole, encode(record, fuzzed_job).value());
    whole.push_back(std::byte{'\n'});
    if (std::holds_alternative<Close>(record)) all.push_back(whole);
  }
  all.push_back(whole);
  return all;
}

}  // namespace

extern const Target target_fold;
const Target target_fold{"fold", run, seeds};

}  // namespace rivulet::fuzz
