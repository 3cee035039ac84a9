#include "tests/support/ledger_output.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace rivulet::testing {
namespace {

using nlohmann::json;

const std::string dropped = "dropped: ";

class PartitionCheck {
 public:
  PartitionCheck(const json& shown, const Fates& fates, StepOfRow& steps, std::vector<std::string>& wrong)
      : shown_(shown), fates_(fates), steps_(steps), wrong_(wrong), number_(shown.at("partition")) {}

  void check() {
    const auto end = static_cast<std::int64_t>(fates_.size());
    expect("start", shown_.at("start").at(0), 0);
    expect("next", shown_.at("next").at(0), end);
    expect("high_watermark", shown_.at("high_watermark"), end);
    expect("waiting", shown_.at("waiting"), 0);
    expect("balanced", shown_.at("balanced").get<bool>() ? 1 : 0, 1);
    if (wrong_.empty()) check_counts();
    if (wrong_.empty()) check_passed();
    if (wrong_.empty()) check_rounds();
  }

 private:
  [[nodiscard]] std::int64_t count(const std::string& fate, std::int64_t from, std::int64_t to) const {
    return std::count(fates_.begin() + from, fates_.begin() + to, fate);
  }
  [[nodiscard]] std::int64_t count(const std::string& fate) const {
    return count(fate, 0, static_cast<std::int64_t>(fates_.size()));
  }
  [[nodiscard]] bool lies_inside(std::int64_t from, std::int64_t to) const {
    return from >= 0 && from <= to && to <= static_cast<std::int64_t>(fates_.size());
  }
  void expect(const std::string& what, std::int64_t said, std::int64_t is) {
    if (said != is) report_error(what + " is " + std::to_string(said) + ", not " + std::to_string(is));
  }
  void report_error(const std::string& words) {
    wrong_.push_back("partition " + std::to_string(number_) + ": " + words);
  }

  void check_counts() {
    expect("rows_trained", shown_.at("rows_trained"), count("trained"));
    expect("holes", shown_.at("holes"), count("hole"));
    std::int64_t all = 0;
    for (const auto& [reason, rows] : shown_.at("rows_dropped").items()) {
      expect("rows_dropped." + reason, rows, count(dropped + reason));
      all += rows.get<std::int64_t>();
    }
    const auto is_dropped = [](const std::string& fate) { return fate.starts_with(dropped); };
    expect("the sum of rows_dropped", all, std::ranges::count_if(fates_, is_dropped));
  }

  /// Every untrained row is listed with its fate; all others were trained.
  void check_passed() {
    Fates listed(fates_.size(), "trained");
    for (const auto& run : shown_.at("passed")) {
      const std::int64_t from = run.at("from").at(0);
      const std::int64_t to = run.at("to").at(0);
      if (!lies_inside(from, to) || run.at("rows") != to - from)
        return report_error("no stretch of rows: " + run.dump());
      std::fill(listed.begin() + from, listed.begin() + to, run.at("fate").get<std::string>());
    }
    for (std::size_t k = 0; k < fates_.size(); ++k)
      if (listed[k] != fates_[k])
        return report_error("offset " + std::to_string(k) + " is said to be " + listed[k] + ", it is " +
                            fates_[k]);
  }

  /// Rounds unknown to this device leave gaps; no row is in two rounds.
  void check_rounds() {
    std::int64_t at = 0;
    std::uint64_t last = 0;
    for (const auto& round : shown_.at("rounds")) {
      const std::int64_t from = round.at("first").at(0);
      const std::int64_t to = round.at("next").at(0);
      const std::uint64_t step = round.at("step");
      if (!lies_inside(from, to) || from < at || step <= last)
        return report_error("out of order: " + round.dump());
      expect("trained of " + round.dump(), round.at("trained"), count("trained", from, to));
      expect("dropped of " + round.dump(), round.at("dropped"),
             to - from - count("trained", from, to) - count("hole", from, to));
      for (auto k = from; k < to; ++k) note(k, step);
      at = to;
      last = step;
    }
  }
  void note(std::int64_t offset, std::uint64_t step) {
    if (fates_[static_cast<std::size_t>(offset)] != "trained") return;
    const auto [known, fresh] = steps_.emplace(std::pair{number_, offset}, step);
    if (!fresh && known->second != step)
      report_error("offset " + std::to_string(offset) + " is in step " + std::to_string(step) +
                   ", for another device in " + std::to_string(known->second));
  }

  const json& shown_;
  const Fates& fates_;
  StepOfRow& steps_;
  std::vector<std::string>& wrong_;
  const int number_;
};

}  // namespace

std::vector<std::string> compare_ledger(const json& shown, const std::vector<Fates>& fates,
                                        StepOfRow& steps) {
  std::vector<std::string> wrong;
  try {
    const auto& partitions = shown.at("partitions");
    if (partitions.size() != fates.size())
      return {std::to_string(partitions.size()) + " partitions, not " + std::to_string(fates.size())};
    for (const auto& partition : partitions)
      PartitionCheck(partition, fates.at(partition.at("partition")), steps, wrong).check();
  } catch (const std::exception& e) {
    wrong.emplace_back(e.what());
  }
  return wrong;
}

}  // namespace rivulet::testing
