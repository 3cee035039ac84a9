#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/status/node_status.h"

namespace rivulet::runtime {

/// What /api/v1/status and /api/v1/group of a device hold, parsed once for all who show it to people: the
/// page for browsers, `rivulet status`, `rivulet top`, `rivulet demo`. A text that is not there is empty, a
/// number that is not there nullopt. Numbers lie between -9e15 and 9e15: one beyond is that. Texts are as
/// they came, whatever is in them: who shows them escapes them. Plain values.
struct NodeReport {
  using Whole = std::optional<std::int64_t>;
  using Number = std::optional<double>;
  using Counts = std::vector<std::pair<std::string, std::uint64_t>>;  ///< by name, without those that are 0
  /// What a number of NodeStatus is to a reader.
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
  struct Member {  ///< of the group, in the round that is shown
    std::string id;
    Number rows_per_s, weight, wait_s, compute_s, ready_before_last_s;
    Whole rows_waiting, rows, next_rows;
  };
  struct Class {  ///< of the last rows
    std::string name;
    Whole rows;
    Number recall, precision;
  };
  /// On this device's own last rows, each before it is trained.
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
  std::string state;    ///< of NodeState
  std::string phrase;   ///< "forming: waiting for c"; empty while it trains
  std::string trouble;  ///< what is in the way of being of use, but that its group forms; empty: nothing
  std::vector<std::string> impaired;  ///< what is left undone while it is ready
  std::string digest;
  // The numbers of core/metrics.def.
#define RIVULET_VALUE(key, type, ...) Read<type::Plain>::As key{};
#include "core/metrics.def"
  Own own;
  std::vector<Partition> partitions;
  std::vector<std::string> unclaimed;  ///< "mnist:1": no device of the group claims it

  // its group
  Whole group_view, told_round;    ///< which round the members and sentences are of
  std::string ready_last;          ///< whom all others waited for in it
  std::vector<std::string> said;   ///< why it did what it did, the main sentences first
  std::vector<Member> members;     ///< by rank; empty before the first round
  std::vector<Round> last_rounds;  ///< newest first
};

/// A number that counts something; 0 if it is not there.
constexpr std::uint64_t count_of(const NodeReport::Whole& number) noexcept {
  return number && *number > 0 ? static_cast<std::uint64_t>(*number) : 0;
}

/// The first sentences of `said` are shown to everybody, the others to those who ask for them.
constexpr std::size_t main_sentences = 3;

/// nullopt if these are not the pages of a device. Pure.
std::optional<NodeReport> read_node_report(const std::string& status_json, const std::string& group_json);

/// In a group, with nothing in its way. Between two rounds it waits for rows, which is a part of training.
bool trains(const NodeReport& report);

/// What it does, in its own phrase: "forming: waiting for c", or its state alone; or what makes it not ready:
/// "not ready: topic "mnist" is gone".
std::string state_and_phrase(const NodeReport& report);

/// "every 8 steps"; empty: it does not say.
std::string when_agreed(const NodeReport& report);
/// "5 % of the parameters"; empty: it does not say.
std::string share_agreed(const NodeReport& report);
/// "every 8 steps, on 5 % of the parameters"; empty: it does not say.
std::string agreement_of(const NodeReport& report);

/// Bytes sent in order to agree to bytes of the records trained on; nothing before the first of these.
NodeReport::Number edge_ratio(const NodeReport& report);

/// Of all reasons.
std::uint64_t refused_rows(const NodeReport& report);

}  // namespace rivulet::runtime
