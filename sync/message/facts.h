#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/digest.h"
#include "core/fields.h"
#include "core/result.h"
#include "core/row.h"

namespace rivulet::sync {

/// Of a head with no measurements; each measurement takes 4 bytes more.
inline constexpr std::size_t facts_head_bytes = 216;
inline constexpr std::uint32_t facts_version = 8;
inline constexpr std::size_t facts_measurements_max = 512;
inline constexpr std::size_t facts_section_max_bytes = std::size_t{176} * 1024;
/// In FactsSection::step_rows, so that they fit beside what partitions take.
inline constexpr std::size_t facts_step_rows_max = 8192;
/// Of one device: with them all in one round, and of each a run of every kind, the section is not full.
inline constexpr std::size_t facts_partitions_max = 256;

/// What a device wants the group to know, as bits of Facts::flags.
enum FactsFlag : std::uint32_t {
  flag_leaving = 1U << 0,     ///< this device ends after this round
  flag_stop = 1U << 1,        ///< the whole group should end after this round
  flag_nonfinite = 1U << 2,   ///< its batch had a non-finite loss or gradient; it takes part with 0 rows
  flag_incomplete = 1U << 3,  ///< it does not have the rows it was assigned (yet)
  flag_digest = 1U << 4,      ///< `digest` is filled in
  flag_dry_run = 1U << 5,     ///< computes but must change nothing
  flag_checkpoint = 1U << 6,  ///< it is time for a checkpoint, by its clock
  flag_residual = 1U << 7,    ///< it has kept something of earlier rounds that it has not sent
  flag_own_steps = 1U << 8,   ///< its rows were trained in steps of its own: it contributes a movement
  flag_early = 1U << 9,       ///< it comes before the schedule asks for it: the others come, too
  flag_changed =
      1U << 10,  ///< the loss of its rows has risen, which no step heeds yet: its stream has changed
  flag_diverged = 1U << 11,  ///< its rows say that the model has diverged
  flag_good = 1U << 12,      ///< its rows behind the checkpoint on trial say that the model is good
  flag_sound = 1U << 13,     ///< its rows say that it has not
};

/// One device's measurements of one round. On the wire: magic, version, the fields of the list below in its
/// order (sync/message/field_bytes.h), zeros, and XXH3 of all that in the last 8 bytes; golden bytes are in
/// the test.
struct Facts {
  std::uint64_t view = 0;   ///< token of the view
  std::uint64_t round = 0;  ///< counts from 0 in a view
  std::uint64_t step = 0;   ///< applied rounds of the agreed state
  std::uint32_t rank = 0;
  std::uint32_t flags = 0;
  std::uint32_t rows = 0;        ///< rows behind this device's contribution, 0 = takes part without one
  std::uint32_t queue_rows = 0;  ///< waiting in the buffer now, this batch not counted
  float stream_rate = 0;         ///< rows per second
  float compute_seconds = 0;     ///< of this batch, or of an own step on average; compute only
  float wait_seconds = 0;        ///< from the end of the last round to this one's, without computing
  float sync_seconds = 0;        ///< of the last round
  double loss_sum = 0;           ///< over this batch's rows
  std::uint64_t correct = 0;
  double gradient_norm2 = 0;
  std::uint64_t rows_dropped = 0;  ///< total of this device in this run
  Digest digest;                   ///< of the agreed state before this round
  std::uint64_t plan_hash = 0;     ///< of the plan of the last round and the table it was made of
  std::uint32_t rows_max = 0;      ///< most rows it could take in one batch (memory, slab)
  std::uint64_t agreed_rows = 0;   ///< row clock of the agreed state
  std::uint64_t stop_at_step = 0;  ///< this device asks the group to end with this applied round; 0 = no wish
  std::uint64_t stop_at_rows = 0;  ///< ... with the round that brings the row clock here
  RowInterval interval;            ///< rows this round accounts for, if it aggregates
  std::uint32_t section_bytes = 0;  ///< length of the second section, 0 = none
  /// What the controllers of the view ask for (ControllerEntry::fact_fields), one after the other.
  std::vector<float> measurements;
  bool operator==(const Facts&) const = default;
};

/// Where a message of facts belongs. A record of the facts says that in its own way, and no plan depends on
/// it.
constexpr void place_fields(Either<Facts> auto& f, auto&& visit) {
  visit("view", f.view);
  visit("round", f.round);
  visit("rank", f.rank);
  visit("section_bytes", f.section_bytes);
}
/// All others: what a decision log records.
constexpr void measured_fields(Either<Facts> auto& f, auto&& visit) {
  visit("step", f.step);
  visit("agreed_rows", f.agreed_rows);
  visit("stop_at_step", f.stop_at_step);
  visit("stop_at_rows", f.stop_at_rows);
  visit("rows", f.rows);
  visit("flags", f.flags);
  visit("queue_rows", f.queue_rows);
  visit("stream_rate", f.stream_rate);
  visit("compute_seconds", f.compute_seconds);
  visit("wait_seconds", f.wait_seconds);
  visit("sync_seconds", f.sync_seconds);
  visit("loss_sum", f.loss_sum);
  visit("correct", f.correct);
  visit("gradient_norm2", f.gradient_norm2);
  visit("rows_dropped", f.rows_dropped);
  visit("rows_max", f.rows_max);
  visit("plan_hash", f.plan_hash);
  visit("digest", f.digest);
  visit("interval", f.interval);
  visit("measurements", f.measurements);
}
constexpr void fields(Either<Facts> auto& f, auto&& visit) {
  place_fields(f, visit);
  measured_fields(f, visit);
}

std::vector<std::byte> encode_head(const Facts& facts);
/// Errors: protocol (version, checksum, or a size that is not that of its measurements; says which).
Result<Facts> decode_head(std::span<const std::byte> bytes);

/// The seldom-sent rest: typed, bounded entries. Unknown types are skipped, so that versions can meet.
struct FactsSection {
  std::vector<RowInterval> more_intervals;  ///< type 1: all but the one in the head
  std::vector<SkippedRange> runs;           ///< type 2: what of all intervals was not trained, and why
  /// Type 3: rows of each own step since the last agreement, of each interval that trained rows, in their
  /// order, one step after the other.
  std::vector<std::uint32_t> step_rows;
  /// Type 4, in the first round of a view: what this device keeps for its own steps from earlier ones; empty:
  /// nothing, or the low half of its digest.
  std::vector<std::uint64_t> private_state;
  /// Type 5: how many of these own steps, the first ones, were made while the last agreement was under way;
  /// empty: none.
  std::vector<std::uint32_t> steps_ahead;
  bool operator==(const FactsSection&) const = default;
  [[nodiscard]] bool empty() const noexcept {
    return more_intervals.empty() && runs.empty() && step_rows.empty() && private_state.empty() &&
           steps_ahead.empty();
  }
};
constexpr void fields(Either<FactsSection> auto& s, auto&& visit) {
  visit("more_intervals", s.more_intervals);
  visit("runs", s.runs);
  visit("step_rows", s.step_rows);
  visit("private_state", s.private_state);
  visit("steps_ahead", s.steps_ahead);
}
/// Errors of encode: protocol (would exceed facts_section_max_bytes).
Result<std::vector<std::byte>> encode_section(const FactsSection& section);
Result<FactsSection> decode_section(std::span<const std::byte> bytes);

/// What every device of the view holds after the gather: index = rank.
struct FactsTable {
  std::vector<Facts> facts;
  std::vector<FactsSection> sections;
  [[nodiscard]] std::size_t size() const noexcept { return facts.size(); }
  bool operator==(const FactsTable&) const = default;
};
/// One device has set it.
bool any_flag(const FactsTable& table, std::uint32_t flag);
/// Of the own steps that a device announces with them; 1 where it announces none.
std::uint32_t steps_behind(const Facts& facts, const FactsSection& section);
/// So long after the round before a device was ready for this one.
double ready_seconds(const FactsTable& table, std::size_t rank);
/// Of every number in it but those that say where it belongs (view, round, rank), which a record of it leaves
/// out. Equal on all devices of a round.
std::uint64_t hash_of(const FactsTable& table);

}  // namespace rivulet::sync
