#include "tests/support/mass_run.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "tests/support/parts/parts.h"
#include "tests/support/parts/policy/many_modes.h"
#include "tests/support/real_node.h"
#include "tests/support/wrapped_transport.h"

namespace rivulet::testing {
namespace {

/// Transport of one device that stops receiving after its `last` send on `lane`. Its peers receive that send
/// and continue; the device receives nothing more.
struct Deaf : WrappedTransport {
  Deaf(std::unique_ptr<sync::Transport> transport, sync::Lane lane, int& sends_left)
      : WrappedTransport(std::move(transport)), lane_(lane), sends_left_(sends_left) {}
  sync::Ticket send(std::uint32_t peer, sync::Lane lane, std::span<const std::byte> bytes) override {
    return sent(lane, inner->send(peer, lane, bytes));
  }
  sync::Ticket send_ahead(std::uint32_t peer, sync::Lane lane, std::span<const std::byte> bytes) override {
    return sent(lane, inner->send_ahead(peer, lane, bytes));
  }
  Progress poll(sync::Ticket ticket) override {
    if (!deaf_) return inner->poll(ticket);
    return ++polls_ > 20 ? Progress::failed : Progress::pending;  // its last send still arrives
  }
  bool wait(sync::Ticket ticket) override { return !deaf_ && inner->wait(ticket); }
  bool healthy() override { return polls_ <= 20 && inner->healthy(); }
  [[nodiscard]] const Error& error() const override { return deaf_ ? error_ : inner->error(); }
  [[nodiscard]] int lost_rank() const noexcept override { return deaf_ ? 0 : inner->lost_rank(); }

 private:
  sync::Ticket sent(sync::Lane lane, sync::Ticket ticket) {
    if (lane == lane_ && --sends_left_ == 0) deaf_ = true;
    return ticket;
  }

  const sync::Lane lane_;
  int& sends_left_;
  bool deaf_ = false;
  int polls_ = 0;
  const Error error_{ErrorCode::peer_lost, "planted: receives nothing more"};
};

/// Computes the expected parameters: each applied round adds one part per row, divided by all its rows. A
/// local step adds one part divided by its own rows, and its delta has the weight of the rows of all local
/// steps. A batch in a round of deltas counts as one step.
class Oracle final : public runtime::DecisionLog {
 public:
  explicit Oracle(MassRun& run) : run_(run) { run_.expected.assign(mass_world * mass_rows, 0); }
  void write(std::uint64_t, std::uint64_t round, const sync::FactsTable& table,
             const sync::policy::RoundPlan& plan) override {
    if (last_) count(table.facts[0].step);
    last_ = RecordedRound{round, table, plan};
    if (run_.decisions) run_.decisions->write(0, round, table, plan);
    if (run_.keeps_rounds) run_.rounds.push_back(*last_);
  }
  /// `behind`: rounds applied so far.
  void count(std::uint64_t behind);

 private:
  MassRun& run_;
  std::optional<RecordedRound> last_;
};

void Oracle::count(std::uint64_t behind) {
  const sync::FactsTable& table = last_->table;
  const bool delta = last_->plan.now.mode == sync::policy::Mode::delta;
  const bool exchanges = delta || last_->plan.now.mode == sync::policy::Mode::gradients;
  if (!exchanges || behind == table.facts[0].step) return;
  double all = 0;
  for (const auto& f : table.facts) all += f.rows;
  for (std::size_t rank = 0; rank < table.size(); ++rank) {
    std::vector<std::uint32_t> steps{table.facts[rank].rows};
    if (!table.sections[rank].step_rows.empty()) steps = table.sections[rank].step_rows;
    auto at = static_cast<std::size_t>(table.facts[rank].interval.first.offset);
    for (const std::uint32_t n : steps)
      for (std::uint32_t i = 0; i < n; ++i)
        run_.expected[rank * mass_rows + at++ % mass_rows] -=
            run_.rate * (delta ? table.facts[rank].rows / all / n : 1 / all);
  }
}

runtime::LoadedConfig counting_job(const MassRun& run) {
  auto job = linear_job(mass_world);
  auto& c = job.config;
  c.batch.policy = run.compressor;
  if (run.local_steps > 0) c.sync.policy = "periodic";
  c.settings.set("sync.local_steps", std::max<std::int64_t>(run.local_steps, 1));
  c.settings.set("sync.overlap", std::string(run.overlap ? "always" : "auto"));
  if (run.both_ways) c.sync.policy = "both_ways";
  if (!run.when.empty()) c.sync.policy = run.when;
  if (!run.compression.empty()) {
    c.compression.policy = run.compression;
    c.settings.set("compression.topk.values", std::string("i8"));
    c.settings.set("compression.topk.per_tensor", false);
    c.settings.set("compression.random_k.seed", std::int64_t{1});
    c.settings.set("compression.two_point.keep", compressed_keep);
    c.settings.set("compression.two_point.delta", 10.0);  // always topk
    c.settings.set("compression.two_point.gain", std::string("squared"));
    c.settings.set("compression.two_point.half_life", 10.0);
  }
  c.sync.collective = run.collective;
  c.model.name = "tally";
  c.model.classes = mass_world * mass_rows / 9;  // one element per row: a slice is of one device
  c.train.lr = run.rate;
  // A round that sends the residuals of many rounds may exceed ten times the usual norm; rows would lose
  // weight.
  c.train.clip_usual = false;
  c.settings.set("train.optimizer.momentum", 0.0);
  dense_from = run.steps - 10;
  c.sync.on_peer_loss = "reform";
  if (run.elastic) c.job.devices = {1, mass_world, mass_world};
  return job;
}

std::vector<std::byte> numbered_row(std::size_t device, std::size_t index) {
  std::array<float, 9> numbers{};  // a label and eight features
  numbers[1] = static_cast<float>(device * mass_rows + index % mass_rows);
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

}  // namespace

void run_mass(MassRun& run) {
  const PartsCatalog parts;
  runtime::SimulatedParts outside;
  outside.catalog = parts.catalog();
  outside.separate = true;
  outside.source = [&](std::size_t device, const Clock& clock) {
    return prepared_source(
        device, device + 1 == mass_world && run.rows_of_last < mass_rows ? run.rows_of_last : run.rows,
        [=](std::size_t i) { return numbered_row(device, i); }, clock);
  };
  Oracle* oracle = nullptr;  // of the group
  outside.decisions = [&](std::size_t device) -> std::unique_ptr<runtime::DecisionLog> {
    if (device == 0) {
      auto books = std::make_unique<Oracle>(run);
      oracle = books.get();
      return books;
    }
    return runtime::make_null_decision_log();
  };
  if (run.deaf_after > 0)
    outside.wires = [&](std::size_t device, sync::Connect usual) -> sync::Connect {
      if (device != 1) return usual;
      return [&run, usual = std::move(usual)](const sync::ViewSpec& spec, sync::AddressBook& book,
                                              Wake& wake) -> Result<std::unique_ptr<sync::Transport>> {
        auto inner = usual(spec, book, wake);
        if (!inner) return inner.error();
        if (run.deaf_again > 0 && run.deaf_after <= 0) run.deaf_after = run.deaf_again;
        return std::unique_ptr<sync::Transport>(
            std::make_unique<Deaf>(std::move(inner).value(), run.lane, run.deaf_after));
      };
    };
  runtime::SimulateOptions options;
  options.stop_after.rounds = run.steps;
  options.link = {std::chrono::milliseconds(1), 1e8};
  if (run.overlap) options.profile = {std::chrono::microseconds(600), 1e6};
  options.faults = run.faults;
  if (run.slow_last) options.own_links = {{{}, 1e8}, {{}, 1e8}, {{}, 1e7}};
  auto group = build_group(counting_job(run), options, std::move(outside));
  run_to_end(*group, [&] { return run.watch && run.watch(*group); });
  auto& state = group->node(0).state();
  const auto p = state.model.parameters().as<float>();
  run.parameters.assign(p.begin(), p.end());
  run.step = state.stamp.step;
  oracle->count(run.step);
  run.views = state.stamp.lineage;
  run.remembered = state.controllers;
  run.early_used = group->node(0).status().early_payloads[runtime::EarlyPayload::used].load();
  for (std::size_t i = 1; i < group->size(); ++i) {
    const auto q = group->node(i).state().model.parameters().as<float>();
    run.agreed = run.agreed && std::equal(p.begin(), p.end(), q.begin(), q.end());
  }
}

double mass_off_by(const MassRun& run, std::size_t device) {
  double most = 0;
  for (std::size_t i = device * mass_rows; i < (device + 1) * mass_rows; ++i)
    most = std::max(most, std::abs(run.expected[i] - double{run.parameters[i]}));
  return most;
}

}  // namespace rivulet::testing
