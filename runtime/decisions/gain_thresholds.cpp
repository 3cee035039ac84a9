#include "runtime/decisions/gain_thresholds.h"

#include <algorithm>
#include <array>
#include <optional>
#include <variant>

#include "runtime/decisions/decision_reader.h"
#include "sync/published/gain.h"

namespace rivulet::runtime {
namespace {

using sync::gain_keeps;
using sync::policy::GainKind;

/// Gains of the rounds, by keep ratio.
class Collection {
 public:
  explicit Collection(std::span<const sync::policy::ControllerEntry* const> catalog) : catalog_(catalog) {}
  Status take(const DecisionRecord& record) {
    if (const auto* view = std::get_if<ViewRecord>(&record)) return enter(*view);
    add(std::get<RoundRecord>(record));
    return ok();
  }
  [[nodiscard]] GainThresholds at(double open) {
    GainThresholds found{.rounds = rounds_};
    for (std::size_t i = 0; i < gain_keeps.size(); ++i)
      found.shares.push_back(
          {gain_keeps.at(i), quantile(squared_.at(i), open), quantile(unsquared_.at(i), open)});
    return found;
  }
  [[nodiscard]] std::uint64_t rounds() const { return rounds_; }

 private:
  Status enter(const ViewRecord& view) {
    auto controllers = sync::policy::controllers_of(view.policy, catalog_);
    if (!controllers) return Error{ErrorCode::bad_record, controllers.error().message};
    wanted_ = sync::policy::measurements_of(controllers.value());
    place_ = sync::policy::place_of_gains(controllers.value());
    policy_ = view.policy;
    return ok();
  }
  void add(const RoundRecord& round) {
    if (!place_) return;
    bool any = false;
    for (const sync::Facts& f : round.table.facts) {
      if (f.measurements.size() != wanted_) return;  // the log lacks the line of its view
      any = any || f.rows > 0;
    }
    if (!any) return;
    const sync::policy::Schedule entered;
    const sync::policy::Inputs inputs{round.table, policy_, entered, round.round, *place_};
    for (std::size_t i = 0; i < gain_keeps.size(); ++i) {
      const auto gain = [&](GainKind kind) {
        return static_cast<float>(sync::policy::mean_gain(inputs, gain_keeps.at(i), kind));
      };
      squared_.at(i).push_back(gain(GainKind::squared));
      unsquared_.at(i).push_back(gain(GainKind::unsquared));
    }
    ++rounds_;
  }
  /// The gain that the share `open` of the rounds reaches.
  static double quantile(std::vector<float>& gains, double open) {
    const auto reach = static_cast<std::ptrdiff_t>(open * static_cast<double>(gains.size()));
    const auto at = gains.begin() + std::clamp<std::ptrdiff_t>(reach - 1, 0, std::ssize(gains) - 1);
    std::nth_element(gains.begin(), at, gains.end(), std::greater<>());
    return *at;
  }

  std::span<const sync::policy::ControllerEntry* const> catalog_;
  sync::policy::PolicyConfig policy_;
  std::optional<std::size_t> place_;
  std::size_t wanted_ = 0;
  std::array<std::vector<float>, gain_keeps.size()> squared_;
  std::array<std::vector<float>, gain_keeps.size()> unsquared_;
  std::uint64_t rounds_ = 0;
};

/// Names of the policies that request gains.
std::string gain_policies(std::span<const sync::policy::ControllerEntry* const> catalog) {
  std::string names;
  for (const auto* entry : catalog)
    if (entry->role == sync::policy::Role::compression && sync::policy::place_of_gains({entry}))
      names += (names.empty() ? "" : ", ") + std::string(entry->name);
  return names;
}

}  // namespace

Result<GainThresholds> gain_thresholds(const std::string& log, double open,
                                       std::span<const sync::policy::ControllerEntry* const> catalog) {
  auto reader = DecisionReader::open(log);
  if (!reader) return reader.error();
  Collection all(catalog);
  while (true) {
    auto record = reader.value().next();
    if (!record) return record.error();
    if (!record.value()) break;
    if (auto taken = all.take(*record.value()); !taken)
      return Error{ErrorCode::bad_record, reader.value().place() + ": " + taken.error().message};
  }
  if (all.rounds() == 0)
    return Error{ErrorCode::unavailable,
                 log + " has no round with gains: they are measured with compression.policy " +
                     gain_policies(catalog)};
  return all.at(open);
}

}  // namespace rivulet::runtime
