#include "sync/round/facts.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

namespace rivulet::sync {
namespace {

static_assert(std::endian::native == std::endian::little,
              "the wire is little-endian; big-endian hosts need a swap here");

constexpr std::uint32_t magic = 0x31465652;  // "RVF1"
constexpr std::size_t checksum_offset = 248;

/// One field of the head: where it lies and what it is. The one table that encode and decode walk.
///   offset  size  field                 offset  size  field
///        0     4  magic "RVF1"             104     8  gradient_norm2 (f64)
///        4     4  version                  112     8  rows_dropped
///        8     8  view                     120    16  digest
///       16     8  round                    136     8  plan_hash
///       24     8  step                     144     8  rows_max
///       32     4  rank                     152     4  interval.partition.topic
///       36     4  flags                    156     4  interval.partition.partition
///       40     4  rows                     160     8  interval.first.offset
///       44     4  rows_since_sync          168     4  interval.first.row
///       48     8  queue_rows               172     4  interval.next.row
///       56     8  stream_rate (f64)        176     8  interval.next.offset
///       64     8  compute_seconds (f64)    184     4  interval.rows_trained
///       72     8  wait_seconds (f64)       188     4  interval.rows_dropped
///       80     8  sync_seconds (f64)       192     4  section_bytes
///       88     8  loss_sum (f64)           196     4  interval.non_final_rows
///       96     8  correct                  200     8  agreed_rows
///                                          208     8  stop_at_step
///                                          216     8  stop_at_rows
///                                          224     8  interval.holes
///                                          232    16  zero
///                                          248     8  XXH3 of the 248 bytes before
template <class F, class Visit>
void for_each_field(F& f, Visit visit) {
  visit(8, f.view);
  visit(16, f.round);
  visit(24, f.step);
  visit(32, f.rank);
  visit(36, f.flags);
  visit(40, f.rows);
  visit(44, f.rows_since_sync);
  visit(48, f.queue_rows);
  visit(56, f.stream_rate);
  visit(64, f.compute_seconds);
  visit(72, f.wait_seconds);
  visit(80, f.sync_seconds);
  visit(88, f.loss_sum);
  visit(96, f.correct);
  visit(104, f.gradient_norm2);
  visit(112, f.rows_dropped);
  visit(120, f.digest.low);
  visit(128, f.digest.high);
  visit(136, f.plan_hash);
  visit(144, f.rows_max);
  visit(152, f.interval.partition.topic);
  visit(156, f.interval.partition.partition);
  visit(160, f.interval.first.offset);
  visit(168, f.interval.first.row);
  visit(172, f.interval.next.row);
  visit(176, f.interval.next.offset);
  visit(184, f.interval.rows_trained);
  visit(188, f.interval.rows_dropped);
  visit(192, f.section_bytes);
  visit(196, f.interval.non_final_rows);
  visit(200, f.agreed_rows);
  visit(208, f.stop_at_step);
  visit(216, f.stop_at_rows);
  visit(224, f.interval.holes);
}

template <class T>
void put(std::vector<std::byte>& out, const T& v) {
  const auto* p = reinterpret_cast<const std::byte*>(&v);
  out.insert(out.end(), p, p + sizeof v);
}

/// Reads values off the front of a section, or says that it is too short.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  template <class T>
  bool get(T& v) {
    if (bytes_.size() < sizeof v) return false;
    std::memcpy(&v, bytes_.data(), sizeof v);
    bytes_ = bytes_.subspan(sizeof v);
    return true;
  }
  bool cut(std::size_t n, Reader& part) {
    if (bytes_.size() < n) return false;
    part = Reader(bytes_.first(n));
    bytes_ = bytes_.subspan(n);
    return true;
  }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }

 private:
  std::span<const std::byte> bytes_;
};

constexpr std::size_t interval_bytes = 52;
constexpr std::size_t run_bytes = 44;
constexpr std::size_t entry_head_bytes = 8;
static_assert(2 * entry_head_bytes + facts_partitions_max * interval_bytes +
                  facts_partitions_max * (drop_reasons + 1) * run_bytes <=
              facts_section_max_bytes);

constexpr std::uint32_t type_intervals = 1;
constexpr std::uint32_t type_runs = 2;

Error broken(std::string what) {
  return {ErrorCode::protocol, "facts: " + std::move(what)};
}

void put_interval(std::vector<std::byte>& out, const RowInterval& i) {
  put(out, i.partition.topic);
  put(out, i.partition.partition);
  put(out, i.first.offset);
  put(out, i.first.row);
  put(out, i.next.row);
  put(out, i.next.offset);
  put(out, i.rows_trained);
  put(out, i.rows_dropped);
  put(out, i.non_final_rows);
  put(out, i.holes);
}

bool get_interval(Reader& in, RowInterval& i) {
  return in.get(i.partition.topic) && in.get(i.partition.partition) && in.get(i.first.offset) &&
         in.get(i.first.row) && in.get(i.next.row) && in.get(i.next.offset) && in.get(i.rows_trained) &&
         in.get(i.rows_dropped) && in.get(i.non_final_rows) && in.get(i.holes);
}

void put_run(std::vector<std::byte>& out, const SkippedRange& r) {
  put(out, r.partition.topic);
  put(out, r.partition.partition);
  put(out, r.from.offset);
  put(out, r.from.row);
  put(out, r.to.row);
  put(out, r.to.offset);
  put(out, r.rows);
  put(out, r.fate);
}

bool get_run(Reader& in, SkippedRange& r) {
  return in.get(r.partition.topic) && in.get(r.partition.partition) && in.get(r.from.offset) &&
         in.get(r.from.row) && in.get(r.to.row) && in.get(r.to.offset) && in.get(r.rows) && in.get(r.fate);
}

void put_entry(std::vector<std::byte>& out, std::uint32_t type, const std::vector<std::byte>& body) {
  put(out, type);
  put(out, static_cast<std::uint32_t>(body.size()));
  out.insert(out.end(), body.begin(), body.end());
}

Status read_entry(std::uint32_t type, Reader body, FactsSection& section) {
  if (type == type_intervals) {
    while (!body.empty()) {
      RowInterval interval;
      if (!get_interval(body, interval)) return broken("interval list is cut short");
      section.more_intervals.push_back(interval);
    }
  } else if (type == type_runs) {
    while (!body.empty()) {
      SkippedRange run;
      if (!get_run(body, run)) return broken("run list is cut short");
      section.runs.push_back(run);
    }
  }
  return ok();
}

}  // namespace

FactsHead encode_head(const Facts& facts) {
  FactsHead head{};
  std::memcpy(head.data(), &magic, 4);
  std::memcpy(head.data() + 4, &facts_version, 4);
  for_each_field(facts, [&](std::size_t at, const auto& v) { std::memcpy(head.data() + at, &v, sizeof v); });
  const std::uint64_t sum = digest_of(std::span(head).first(checksum_offset)).low;
  std::memcpy(head.data() + checksum_offset, &sum, 8);
  return head;
}

std::uint64_t hash_of(const FactsTable& table) {
  Hasher h;
  for (std::size_t i = 0; i < table.size(); ++i) {
    Facts f = table.facts[i];
    f.view = f.round = 0;
    f.rank = f.section_bytes = 0;
    if ((f.flags & flag_digest) == 0) f.digest = {};
    for (double* number : {&f.stream_rate, &f.compute_seconds, &f.wait_seconds, &f.sync_seconds, &f.loss_sum,
                           &f.gradient_norm2})
      if (std::isnan(*number)) *number = std::numeric_limits<double>::quiet_NaN();  // as a record has it
    h.add(encode_head(f));
    std::vector<std::byte> section;
    for (const auto& interval : table.sections[i].more_intervals) put_interval(section, interval);
    for (const auto& run : table.sections[i].runs) put_run(section, run);
    h.add(section);
  }
  return h.finish().low;
}

Result<Facts> decode_head(std::span<const std::byte> bytes) {
  if (bytes.size() != facts_head_bytes) return broken(std::to_string(bytes.size()) + " bytes, expected 256");
  std::uint32_t seen_magic = 0;
  std::uint32_t version = 0;
  std::uint64_t sum = 0;
  std::memcpy(&seen_magic, bytes.data(), 4);
  std::memcpy(&version, bytes.data() + 4, 4);
  std::memcpy(&sum, bytes.data() + checksum_offset, 8);
  if (seen_magic != magic) return broken("wrong magic");
  if (version != facts_version)
    return broken("version " + std::to_string(version) + ", this build speaks " +
                  std::to_string(facts_version));
  if (sum != digest_of(bytes.first(checksum_offset)).low) return broken("checksum differs");
  Facts facts;
  for_each_field(facts, [&](std::size_t at, auto& v) { std::memcpy(&v, bytes.data() + at, sizeof v); });
  if (facts.section_bytes > facts_section_max_bytes)
    return broken("section of " + std::to_string(facts.section_bytes) + " bytes is over the limit");
  return facts;
}

Result<std::vector<std::byte>> encode_section(const FactsSection& section) {
  std::vector<std::byte> out;
  if (!section.more_intervals.empty()) {
    std::vector<std::byte> body;
    for (const auto& i : section.more_intervals) put_interval(body, i);
    put_entry(out, type_intervals, body);
  }
  if (!section.runs.empty()) {
    std::vector<std::byte> body;
    for (const auto& r : section.runs) put_run(body, r);
    put_entry(out, type_runs, body);
  }
  if (out.size() > facts_section_max_bytes)
    return broken("section of " + std::to_string(out.size()) + " bytes is over the limit");
  return out;
}

Result<FactsSection> decode_section(std::span<const std::byte> bytes) {
  if (bytes.size() > facts_section_max_bytes) return broken("section is over the limit");
  FactsSection section;
  Reader in(bytes);
  while (!in.empty()) {
    std::uint32_t type = 0;
    std::uint32_t length = 0;
    Reader body({});
    if (!in.get(type) || !in.get(length) || !in.cut(length, body)) return broken("section is cut short");
    if (auto read = read_entry(type, body, section); !read) return read.error();
  }
  return section;
}

}  // namespace rivulet::sync
