#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/record.h"
#include "core/time.h"
#include "sync/round/facts.h"

/// Pure laws: numbers in, numbers out. No clock, socket, tensor or own rank here, so every device computes
/// the same plan from the same table, and a recorded table gives the same plan again.
namespace rivulet::sync::policy {

enum class Mode : std::uint8_t {
  gradients,   ///< weighted gradients are summed, everyone steps with the sum
  parameters,  ///< movement since the last aggregating round is summed (after local steps)
  local,       ///< everyone steps on its own; intervals stay pending
  hold,        ///< nobody steps; batches and gradients are kept for the next round
  idle,        ///< nobody has rows; nothing changes
  skip,        ///< rows are used up but nothing is applied (non-finite, dry run)
};
std::string_view name_of(Mode mode) noexcept;

enum class Reduction : std::uint8_t { gather, sum };
std::string_view name_of(Reduction reduction) noexcept;

/// Rows that go from one rank to another before the next round computes. The owner announces them.
struct Move {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t rows = 0;
  bool operator==(const Move&) const = default;
};

/// What all devices do in this round (mode .. weights) and bring to the next one (rows .. moves).
struct RoundPlan {
  Mode mode = Mode::idle;
  Reduction reduction = Reduction::gather;  ///< or, by name, `aggregation`
  std::string aggregation;                  ///< catalog name of the collective; empty = the reduction's own
  std::string compressor = "dense";         ///< catalog name
  double keep_ratio = 1.0;
  std::vector<double> weights;          ///< [N], sums to 1 unless nobody has rows
  std::uint64_t payload_max_bytes = 0;  ///< bound of one device's payload
  double learning_rate_factor = 1.0;
  std::vector<std::uint32_t> next_rows;  ///< [N] rows for the next round; 0 = enter at once
  Duration next_wait{};     ///< enter the next round at the latest this long after this one ended
  bool next_whole = false;  ///< a device without all its rows enters with none and says so
  bool rest = false;        ///< nothing is expected: enter on own rows, on a peer's entry, or after next_wait
  std::vector<Move> next_moves;
  bool freeze = false;                 ///< slow knobs stay where they are (profiling)
  bool checkpoint = false;             ///< everyone saves the agreed state as this round leaves it
  bool stop = false;                   ///< everyone ends after this round, exit 0
  std::vector<std::uint32_t> leaving;  ///< ranks that end after this round
  std::string why;                     ///< one phrase for people and the decision log
  bool operator==(const RoundPlan&) const = default;
};
/// For Facts::plan_hash: equal plans made of equal tables (their hash_of), equal hashes. The table is in it
/// so that the next round bears witness to every fact of this one, also to those that no plan depends on.
std::uint64_t hash_of(const RoundPlan& plan, std::uint64_t table_hash);

struct PolicyConfig {
  std::string batch_policy = "stream";
  std::uint32_t rows = 64;
  std::uint32_t min = 1;
  std::uint32_t max = 1024;
  Duration tick = std::chrono::milliseconds(100);
  Duration max_wait = std::chrono::milliseconds(200);
  Duration idle_wait_max = std::chrono::seconds(1);
  std::optional<Reduction> reduction =
      Reduction::gather;                 ///< none: whichever fits the group (sync.reduction auto)
  std::uint64_t contribution_bytes = 0;  ///< (P + B) * bytes per number
  std::uint64_t checkpoint_rounds = 0;   ///< applied rounds from one checkpoint to the next; 0 = by wish only
};

/// What the law may remember: only what came out of earlier plans and is equal everywhere.
struct PolicyState {
  std::uint64_t round = 0;        ///< of the view
  std::uint32_t idle_rounds = 0;  ///< in a row, so far
  RoundPlan last;
  std::uint64_t table_hash = 0;  ///< of the table that `last` was made of; 0: of none
  std::vector<double> memory;    ///< free for a batch policy; starts empty with each view
  bool operator==(const PolicyState&) const = default;
};

/// A batch policy only proposes: it gets a plan the arbiter already filled (mode, weights, stop, leaving) and
/// sets next_rows, next_wait, next_moves, and may change the mode. To add one, add a file
/// sync/policy/law/<name>.cpp that defines `const PolicyEntry policy_<name>`; the build finds it.
struct PolicyEntry {
  std::string_view name;
  std::string_view help;
  void (*propose)(const FactsTable& table, const PolicyConfig& config, PolicyState& state, RoundPlan& plan);
};
std::span<const PolicyEntry* const> builtin_policies() noexcept;

/// The arbiter: the one place where a plan is made.
/// Reads table, config and state only; advances `state` to what the next round's call needs.
RoundPlan plan(const FactsTable& table, const PolicyConfig& config, const PolicyEntry& law,
               PolicyState& state);

/// The plan before any round of a view: nobody has rows yet, everyone enters at once so that rates get known.
RoundPlan first_plan(std::size_t world, const PolicyConfig& config);

/// Compares the digests of a table. Empty = equal (or none carried). Otherwise one sentence that names the
/// minority when world >= 3, and both sides otherwise. `ids` are the device ids by rank.
std::string digest_disagreement(const FactsTable& table, std::span<const std::string> ids);

}  // namespace rivulet::sync::policy
