#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/status/node_status.h"

namespace rivulet::runtime {

/// /api/v1/status and /api/v1/group of a device, parsed once for all displays: the page for browsers,
/// `rivulet status`, `rivulet top`, `rivulet demo`. A missing text is empty, a missing number nullopt.
/// Numbers are clamped to ±9e15. Texts are unescaped input: the display escapes them. Plain values.
struct NodeReport {
  using Whole = std::optional<std::int64_t>;
  using Number = std::optional<double>;
  using Counts = std::vector<std::pair<std::string, std::uint64_t>>;  ///< counts by name, zeros omitted
  /// The type in this struct for a value of NodeStatus.
  template <class Plain>
  struct Read {
    using As = std::conditional_t<std::is_floating_point_v<Plain>, Number,
                                  std::conditional_t<std::is_integral_v<Plain>, Whole, Counts>>;
  };
  struct Partition {
    std::string topic;
    std::string state;  ///< opening | reading | paused | unreachable | stopped
    std::string reason;
    Whole partition, next_offset, high_watermark, skipped;
  };
  struct Member {  ///< a member of the group in the displayed round
    std::string id;
    Number rows_per_s, weight, wait_s, compute_s, ready_before_last_s;
    Whole rows_waiting, rows, next_rows;
  };
  struct Class {  ///< scores of a class over the last rows
    std::string name;
    Whole rows;
    Number recall, precision;
  };
  /// Scores on this device's own last rows, each before training.
  struct Own {
    Whole rows;
    Number loss, accuracy, largest_share, mean_absolute_error, r2;
    std::string largest_class;
    std::vector<Class> classes;
  };
  struct Round {
    std::string mode;
    std::string why;
    std::string ready_last;
    Whole step, rows;
  };

  // the device
  std::string id, job, model;
  std::string state;       ///< NodeState
  std::string phrase;      ///< "forming: waiting for c"; empty while it trains
  std::string view_ended;  ///< why its last view ended; empty if none has
  std::string trouble;     ///< why it is not ready, besides its state; empty if nothing else prevents it
  std::vector<std::string> impaired;  ///< findings that do not affect readiness
  std::string digest;
  // The values of core/metrics.def.
#define RIVULET_VALUE(key, type, ...) Read<type::Plain>::As key{};
#include "core/metrics.def"
  Own own;
  std::vector<Partition> partitions;
  std::vector<std::string> unclaimed;  ///< partitions without a claim: "mnist:1"

  // its group
  Whole group_view, reported_round;  ///< the round that members and sentences describe
  std::string ready_last;            ///< the member that all others waited for
  std::vector<std::string> detail;   ///< explanation of the round, the main sentences first
  std::vector<Member> members;       ///< members by rank; empty before the first round
  std::vector<Round> last_rounds;    ///< newest first
};

/// Returns a count; 0 if missing.
constexpr std::uint64_t count_of(const NodeReport::Whole& number) noexcept {
  return number && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
}

/// Number of sentences of NodeReport::detail shown by default; the rest is in the details.
constexpr std::size_t main_sentences = 3;

/// Parses both pages. Returns nullopt if they do not come from a device. Pure.
std::optional<NodeReport> read_node_report(const std::string& status_json, const std::string& group_json);

/// Whether the device trains: it is in a group, and nothing prevents training. Waiting for rows between
/// rounds is part of training.
bool trains(const NodeReport& report);

/// Returns the device's phrase, such as "forming: waiting for c", or its state. If it is not ready, returns
/// the reason: "not ready: topic "mnist" is gone".
std::string state_and_phrase(const NodeReport& report);

/// Returns why the last view ended, and its cost: "rank 2 (c) is lost; 0.40 s without a step". Empty if none
/// has.
std::string last_change(const NodeReport& report);

/// "every 8 steps"; empty if not reported.
std::string sync_interval_of(const NodeReport& report);
/// "5 % of the parameters"; empty if not reported.
std::string sync_share_of(const NodeReport& report);
/// "every 8 steps, on 5 % of the parameters"; empty if not reported.
std::string sync_of(const NodeReport& report);

/// Returns synchronization bytes sent / bytes of trained records; nullopt before the first trained record.
NodeReport::Number edge_ratio(const NodeReport& report);

/// Returns the number of rows refused for any reason.
std::uint64_t refused_rows(const NodeReport& report);

}  // namespace rivulet::runtime
