#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/result.h"
#include "core/shared_list.h"
#include "core/stamp.h"
#include "sync/message/facts.h"
#include "sync/message/plan.h"

/// The lines of a decision log (decisions.jsonl) and their conversion to and from bytes. One JSON object per
/// line, with its checksum as the last member. All functions are pure.
namespace rivulet::runtime {

inline constexpr std::uint64_t decision_log_version = 11;
/// Maximum length of a line. A table of 1 000 devices takes 0.6 MB.
inline constexpr std::size_t decision_line_max_bytes = std::size_t{16} << 20;

/// All inputs of plans except the facts. Written before the first round of a view, and again where a new file
/// begins within the view.
struct ViewRecord {
  std::uint64_t number = 0;
  std::uint64_t token = 0;
  SharedList<std::string> members;  ///< device ids; index = rank
  std::uint32_t rank = 0;           ///< rank of the device that wrote the line
  Stamp from;                       ///< the state the view began with
  std::string digest;               ///< digest of that state
  std::string group;                ///< hash of the group's configuration
  sync::policy::PolicyConfig policy;
  sync::policy::PolicyState state;  ///< input of the next round's plan
};

struct RoundRecord {
  std::uint64_t view = 0;
  std::uint64_t round = 0;
  sync::FactsTable table;
  sync::policy::RoundPlan plan;
  std::uint64_t plan_hash = 0;  ///< plan hash as written
};

using DecisionRecord = std::variant<ViewRecord, RoundRecord>;

/// Encodes a record as one line, without the newline. Doubles have the shortest digits that restore their
/// bits; NaN and infinities become "nan", "inf", "-inf", since JSON has no numbers for them.
std::string decision_line(const ViewRecord& view);
std::string decision_line(const RoundRecord& round);
std::string decision_line(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                          const sync::policy::RoundPlan& plan);

/// Decodes an untrusted line. Accepts only the exact bytes that decision_line() writes, and only plans that
/// sync::policy::plan() allows. Errors: bad_record (the message does not name file and line).
Result<DecisionRecord> parse_decision_line(std::string_view line);

/// A field that differs, with both values as the log writes them.
struct Difference {
  std::string field;
  std::string recorded;
  std::string computed;
};
/// Return the first field that differs in any bit; nullopt if all are equal.
std::optional<Difference> difference(const sync::policy::RoundPlan& recorded,
                                     const sync::policy::RoundPlan& computed);
std::optional<Difference> difference(const sync::policy::PolicyState& recorded,
                                     const sync::policy::PolicyState& computed);
/// Formats a double as the log does.
std::string text_of_number(double value);

}  // namespace rivulet::runtime
