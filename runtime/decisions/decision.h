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

/// The lines of a decision log (decisions.jsonl): what they hold, and both ways between them and their bytes.
/// One JSON object per line, the last member of each is its checksum. Pure.
namespace rivulet::runtime {

inline constexpr std::uint64_t decision_log_version = 10;
/// No longer line is read. A table of 1 000 devices takes 0.6 MB.
inline constexpr std::size_t decision_line_max_bytes = std::size_t{16} << 20;

/// Before the first round of a view, and again where a new file begins in its middle: all that plans are made
/// from besides the facts.
struct ViewRecord {
  std::uint64_t number = 0;
  std::uint64_t token = 0;
  SharedList<std::string> members;  ///< device ids; index = rank
  std::uint32_t rank = 0;           ///< of the device that wrote this
  Stamp from;                       ///< the state the view began with
  std::string digest;               ///< of that state
  std::string group;                ///< hash of the group's configuration
  sync::policy::PolicyConfig policy;
  sync::policy::PolicyState state;  ///< that the next round's plan starts from
};

struct RoundRecord {
  std::uint64_t view = 0;
  std::uint64_t round = 0;
  sync::FactsTable table;
  sync::policy::RoundPlan plan;
  std::uint64_t plan_hash = 0;  ///< as written
};

using DecisionRecord = std::variant<ViewRecord, RoundRecord>;

/// Without the newline. Doubles in as many digits as give the same bits again; NaN and infinities as "nan",
/// "inf", "-inf", which JSON has no numbers for.
std::string decision_line(const ViewRecord& view);
std::string decision_line(const RoundRecord& round);
std::string decision_line(std::uint64_t view, std::uint64_t round, const sync::FactsTable& table,
                          const sync::policy::RoundPlan& plan);

/// What a line holds, taking nothing on trust: only what decision_line() writes, byte for byte, is read, and
/// only what sync::policy::plan() may be given.
/// Errors: bad_record (one phrase, without the place).
Result<DecisionRecord> parse_decision_line(std::string_view line);

/// A field in which two things differ, both as the log writes them.
struct Difference {
  std::string field;
  std::string recorded;
  std::string computed;
};
/// The first field in which they differ to a bit.
std::optional<Difference> difference(const sync::policy::RoundPlan& recorded,
                                     const sync::policy::RoundPlan& computed);
std::optional<Difference> difference(const sync::policy::PolicyState& recorded,
                                     const sync::policy::PolicyState& computed);
/// A double as the log writes it.
std::string text_of_number(double value);

}  // namespace rivulet::runtime
