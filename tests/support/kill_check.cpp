// Final checks of the kill harness.
#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "devices/device.h"
#include "runtime/state/state_file.h"
#include "tests/support/device_group.h"
#include "tests/support/kill_harness.h"
#include "tests/support/ledger_output.h"

namespace rivulet::testing {
namespace {

using namespace std::chrono_literals;

std::string lines_of(const std::vector<std::string>& all) {
  std::string text;
  for (const auto& words : all) text += words + "\n";
  return text;
}

}  // namespace

RunHistory KillGroup::check_exact() {
  end_all();
  if (options_.truncated) learn_truncated();
  std::vector<std::string> directories = kept_of_wiped_;
  const FinalState state = check_final_state(0);
  directories.push_back(directory(0));
  for (int i = 1; i < options_.devices; ++i) {
    const FinalState other = check_final_state(i);
    CHECK(other.digest == state.digest);
    CHECK(other.step == state.step);
    directories.push_back(directory(i));
  }
  check_ledgers(state);
  RunHistory history = read_history(directories, state.step);
  INFO(story());
  INFO(lines_of(history.wrong));
  CHECK(history.wrong.empty());
  CHECK(history.rows == static_cast<std::uint64_t>(rows_in_all()));
  for (int p = 0; p < options_.devices; ++p) CHECK(history.next_offset[p] == options_.rows_per_device);
  return history;
}

/// As a user does: all devices end in the same round, with a checkpoint.
void KillGroup::end_all() {
  const auto stopped = run_rivulet({"stop", "--job", "tally", "--brokers", brokers()}, 60s);
  INFO(stopped.output, stopped.errors);
  CHECK(stopped.status.code == 0);
  for (int i = 0; i < options_.devices; ++i) {
    const auto ended = process(i).wait(30s);
    INFO(story());
    REQUIRE(ended);
    CHECK(ended->code == 0);
  }
}

KillGroup::FinalState KillGroup::check_final_state(int device) {
  const auto host = devices::make_host_device();
  devices::ModelLayout layout;
  layout.parameters = counters();
  const auto read =
      runtime::read_state_file(directory(device) + "/final.state", {{"linear", "", {}}, layout, *host});
  REQUIRE_MESSAGE(read, (read ? "" : read.error().message));
  const auto& state = read.value().state;
  const auto counts = state.model.parameters().as<float>();
  std::vector<float> wanted(counts.size(), 0.0F);
  std::size_t row = 0;
  for (int p = 0; p < options_.devices; ++p)
    for (int k = 0; k < options_.rows_per_device; ++k)
      wanted[row++] = fate_of(p, k) == "trained" ? 1.0F : 0.0F;
  int lost = 0;
  int again = 0;
  int invented = 0;
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    lost += counts[k] < wanted[k] ? 1 : 0;
    again += wanted[k] == 1.0F && counts[k] > 1.0F ? 1 : 0;
    invented += wanted[k] == 0.0F && counts[k] > 0.0F ? 1 : 0;
  }
  CAPTURE(device);
  CHECK(lost == 0);
  CHECK(again == 0);
  CHECK(invented == 0);
  CHECK(std::ranges::equal(counts, wanted));
  return {state.stamp.step, read.value().digest.hex()};
}

RunOutput KillGroup::ask_ledger(int device, std::vector<std::string> words) const {
  words.insert(words.begin(), "ledger");
  words.insert(words.end(), {"--config", config_, "--brokers", brokers(), "--data-dir", directory(device),
                             "--set", "job.devices=" + std::to_string(options_.devices)});
  return run_rivulet(words, 60s);
}

/// Only the group knows which rows were dropped as too many. Later checks verify that all devices report the
/// same rows, and that the state contains all others.
void KillGroup::learn_truncated() {
  const auto shown = ask_ledger(0, {"show", "--rows", "--json"});
  REQUIRE_MESSAGE(shown.status.code == 0, shown.errors);
  const auto books = nlohmann::json::parse(shown.output, nullptr, false);
  REQUIRE(books.is_object());
  for (const auto& partition : books.at("partitions"))
    for (const auto& run : partition.at("passed"))
      if (run.at("fate") == "dropped: truncated")
        for (int k = run.at("from").at(0); k < run.at("to").at(0).get<int>(); ++k)
          truncated_.emplace(partition.at("partition").get<int>(), k);
}

void KillGroup::check_ledgers(const FinalState& state) {
  std::vector<Fates> fates(static_cast<std::size_t>(options_.devices));
  for (int p = 0; p < options_.devices; ++p)
    for (int k = 0; k < options_.rows_per_device; ++k)
      fates[static_cast<std::size_t>(p)].push_back(fate_of(p, k));
  StepOfRow steps;
  for (int i = 0; i < options_.devices; ++i) {
    CAPTURE(i);
    const auto verified = ask_ledger(i, {"verify"});
    INFO(verified.output, verified.errors);
    CHECK(verified.status.code == 0);
    const auto shown = ask_ledger(i, {"show", "--rows", "--json"});
    REQUIRE_MESSAGE(shown.status.code == 0, shown.errors);
    const auto books = nlohmann::json::parse(shown.output, nullptr, false);
    REQUIRE(books.is_object());
    CHECK(books.value("step", std::uint64_t{0}) == state.step);
    CHECK(books.value("digest", "") == state.digest);
    CHECK(books.value("rows", 0) == rows_in_all());
    const auto wrong = compare_ledger(books, fates, steps);
    INFO(lines_of(wrong));
    CHECK(wrong.empty());
  }
  // Each round is in a log, unless the disk with that log was lost.
  if (kept_of_wiped_.empty()) CHECK(steps.size() == static_cast<std::size_t>(rows_in_all()));
}

}  // namespace rivulet::testing
