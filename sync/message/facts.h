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

/// Size of a head without measurements. Each measurement adds 4 bytes.
inline constexpr std::size_t facts_head_bytes = 216;
inline constexpr std::uint32_t facts_version = 8;
inline constexpr std::size_t facts_measurements_max = 512;
inline constexpr std::size_t facts_section_max_bytes = std::size_t{176} * 1024;
/// Maximum of FactsSection::step_rows, to leave room for partitions.
inline constexpr std::size_t facts_step_rows_max = 8192;
/// Maximum number of partitions per device. All fit into one section, each with a skipped range of every
/// kind.
inline constexpr std::size_t facts_partitions_max = 256;

/// What a device reports to the group, as bits of Facts::flags.
enum FactsFlag : std::uint32_t {
  flag_leaving = 1U << 0,      ///< this device stops after this round
  flag_stop = 1U << 1,         ///< requests that the whole group stops after this round
  flag_nonfinite = 1U << 2,    ///< its batch had a non-finite loss or gradient; it participates with 0 rows
  flag_incomplete = 1U << 3,   ///< it does not have its assigned rows (yet)
  flag_digest = 1U << 4,       ///< `digest` is set
  flag_dry_run = 1U << 5,      ///< computes but must not change anything
  flag_checkpoint = 1U << 6,   ///< requests a checkpoint, by its clock
  flag_residual = 1U << 7,     ///< it has a residual
  flag_local_steps = 1U << 8,  ///< its rows were trained in local steps: it contributes a delta
  flag_early = 1U << 9,  ///< early synchronization: it enters before the schedule, and the others follow
  flag_changed =
      1U << 10,  ///< the loss of its rows has risen, but no step reflects that yet: its stream has changed
  flag_diverged = 1U << 11,  ///< its rows indicate that the model has diverged
  flag_good = 1U << 12,      ///< its rows after the checkpoint on trial indicate a good model
  flag_sound = 1U << 13,     ///< its rows indicate that the model has not diverged
  flag_joiner = 1U << 14,    ///< a device waits to join the group: requests a new view after this round
};

/// One device's measurements of one round. On the wire: magic, version, the fields listed below in order
/// (sync/message/field_bytes.h), zeros, and XXH3 of all that in the last 8 bytes. The test has golden bytes.
struct Facts {
  std::uint64_t view = 0;   ///< token of the view
  std::uint64_t round = 0;  ///< counts from 0 in a view
  std::uint64_t step = 0;   ///< applied rounds of the agreed state
  std::uint32_t rank = 0;
  std::uint32_t flags = 0;
  std::uint32_t rows = 0;        ///< rows behind this device's contribution; 0: participates without one
  std::uint32_t queue_rows = 0;  ///< rows waiting in the buffer, without this batch
  float stream_rate = 0;         ///< rows per second
  float compute_seconds = 0;     ///< compute time of this batch, or mean per local step
  float wait_seconds = 0;  ///< time from the end of the last round to entering this one, without compute time
  float sync_seconds = 0;  ///< exchange time of the last round
  double loss_sum = 0;     ///< sum over this batch's rows
  std::uint64_t correct = 0;
  double gradient_norm2 = 0;
  std::uint64_t rows_dropped = 0;   ///< total of this device in this run
  Digest digest;                    ///< digest of the agreed state before this round
  std::uint64_t plan_hash = 0;      ///< hash of the last round's plan and its table
  std::uint32_t rows_max = 0;       ///< maximum rows of one batch (memory, slab)
  std::uint64_t agreed_rows = 0;    ///< row clock of the agreed state
  std::uint64_t stop_at_step = 0;   ///< requests that the group stops after this applied round; 0: no request
  std::uint64_t stop_at_rows = 0;   ///< requests that the group stops at this row clock
  RowInterval interval;             ///< interval of this round's rows, if it aggregates
  std::uint32_t section_bytes = 0;  ///< length of the second section; 0: none
  /// Requested measurements of the view's controllers (ControllerEntry::fact_fields), in order.
  std::vector<float> measurements;
  bool operator==(const Facts&) const = default;
};

/// Fields that identify a message of facts. Recorded facts are identified differently, and no plan depends
/// on these fields.
constexpr void place_fields(Either<Facts> auto& f, auto&& visit) {
  visit("view", f.view);
  visit("round", f.round);
  visit("rank", f.rank);
  visit("section_bytes", f.section_bytes);
}
/// All other fields, as recorded in decision logs.
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
/// Errors: protocol (names the mismatch: version, checksum, or size for the measurements).
Result<Facts> decode_head(std::span<const std::byte> bytes);

/// Rarely sent facts, as typed, bounded entries. Skips unknown types, for compatibility between versions.
struct FactsSection {
  std::vector<RowInterval> more_intervals;  ///< type 1: all intervals except the one in the head
  std::vector<SkippedRange> runs;           ///< type 2: skipped ranges of all intervals, with their reasons
  /// Type 3: rows of each local step since the last synchronization, per interval with trained rows, in
  /// order, step after step.
  std::vector<std::uint32_t> step_rows;
  /// Type 4, in the first round of a view: low half of the digest of the private state for local steps;
  /// empty: no such state.
  std::vector<std::uint64_t> private_state;
  /// Type 5: number of local steps, counted from the first, made during the last synchronization; empty:
  /// none.
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
/// Errors: protocol (would exceed facts_section_max_bytes).
Result<std::vector<std::byte>> encode_section(const FactsSection& section);
Result<FactsSection> decode_section(std::span<const std::byte> bytes);

/// The facts of all devices of the view, after the gather: index = rank.
struct FactsTable {
  std::vector<Facts> facts;
  std::vector<FactsSection> sections;
  [[nodiscard]] std::size_t size() const noexcept { return facts.size(); }
  bool operator==(const FactsTable&) const = default;
};
/// Whether any device has set the flag.
bool any_flag(const FactsTable& table, std::uint32_t flag);
/// Number of local steps that a device announces; 1 without local steps.
std::uint32_t steps_behind(const Facts& facts, const FactsSection& section);
/// Seconds from the end of the last round until the device was ready for this one.
double ready_seconds(const FactsTable& table, std::size_t rank);
/// Hash of all fields except view, round and rank, which records omit. Equal on all devices of a round.
std::uint64_t hash_of(const FactsTable& table);

}  // namespace rivulet::sync
