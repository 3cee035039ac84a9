#include "runtime/simulate.h"

#include <filesystem>

#include "runtime/evaluator.h"
#include "runtime/node_config.h"
#include "runtime/wiring/simulation.h"
#include "runtime/wiring/simulation_results.h"

namespace rivulet::runtime {
namespace {

/// Measures node 0's model on held-out rows now and then: all devices hold the same bits.
class Examiner {
 public:
  static Result<std::unique_ptr<Examiner>> make(const Config& config, const Catalog& catalog,
                                                const std::string& path, double every_s) {
    auto out = std::make_unique<Examiner>();
    out->every_s_ = every_s;
    out->next_s_ = every_s;
    out->device_ = devices::make_host_device();
    auto data = HeldOut::open(config, catalog, path, 100'000);
    if (!data) return data.error();
    out->data_ = std::move(data).value();
    auto trainer = build_trainer(config, catalog, out->data_->shape(), *out->device_);
    if (!trainer) return trainer.error();
    out->trainer_ = std::move(trainer).value();
    return out;
  }
  Status look_if_due(const devices::ModelState& model, double seconds) {
    if (seconds < next_s_) return ok();
    next_s_ = seconds + every_s_;
    return look(model, seconds);
  }
  Status look(const devices::ModelState& model, double seconds) {
    auto report = evaluate_all(*trainer_, model, *data_);
    if (!report) return report.error();
    accuracy_ = static_cast<double>(report.value().correct) / static_cast<double>(report.value().rows);
    reached_.add(seconds, *accuracy_);
    if (tables_ != nullptr) tables_->add_accuracy(seconds, *accuracy_);
    return ok();
  }
  /// Keeps every measurement there, too.
  void write_into(ResultTables& tables) { tables_ = &tables; }
  void tell(Summary& s) const {
    s.accuracy = accuracy_;
    s.time_to_accuracy_s = reached_.reached();
  }

 private:
  double every_s_ = 5;
  double next_s_ = 5;
  std::unique_ptr<devices::Device> device_;
  std::unique_ptr<devices::Trainer> trainer_;
  std::unique_ptr<HeldOut> data_;
  std::optional<double> accuracy_;
  TimeToAccuracy reached_;
  ResultTables* tables_ = nullptr;
};

SimulateResult refuse(const Error& error) {
  SimulateResult result;
  result.exit = exit_code_for(error.code);
  result.message = error.message;
  return result;
}

/// Only a folder has a test split; the rows of a single file are trained on, so they measure nothing.
std::string held_out_of(const SimulateOptions& options) {
  if (!options.held_out.empty()) return options.held_out;
  return std::filesystem::is_directory(options.data) ? options.data : "";
}

void take_prequential(SimulatedGroup& group, Summary& s) {
  Node& node = group.node(group.witness());
  const auto& status = node.status();
  if (status.group_rows.load() > 0) s.accuracy = status.accuracy.load();
  s.time_to_accuracy_s = node.worker().time_to_accuracy().reached();
}

}  // namespace

SimulateResult simulate(const LoadedConfig& given, const SimulateOptions& options,
                        const std::function<void(double, const Summary&)>& progress, StopRequest& stop) {
  const RealClock real;
  const TimePoint began = real.now();
  LoadedConfig loaded = given;
  if (options.data.empty())
    if (auto fits = expect_synthetic_rows(loaded.config, builtin_catalog()); !fits)
      return refuse(fits.error());
  devices::prepare_process(loaded.config.device.threads);
  SimulatedParts parts;
  SimulatedGroup* running = nullptr;
  ResultTables tables([&] { return running->seconds(); });
  if (!options.csv.empty()) parts.decisions = [&](std::size_t) { return tables.log(); };
  auto built = SimulatedGroup::build(loaded, options, std::move(parts));
  if (!built) return refuse(built.error());
  SimulatedGroup& group = *built.value();
  running = &group;
  std::unique_ptr<Examiner> examiner;
  const bool classes = loaded.config.train.loss == "cross_entropy" && !options.timing_only;
  const std::string held_out = held_out_of(options);
  if (!held_out.empty() && classes) {
    auto made = Examiner::make(loaded.config, builtin_catalog(), held_out, options.evaluate_every_s);
    if (!made) return refuse(made.error());
    examiner = std::move(made).value();
    if (!options.csv.empty()) examiner->write_into(tables);
  }
  const auto sum_up = [&] {
    Summary s = group.summary();
    if (classes) take_prequential(group, s);
    if (examiner) examiner->tell(s);
    return s;
  };
  SimulateResult result;
  Status measured = ok();
  double next_report = 1;
  result.events = group.run_until([&] {
    const double now = group.seconds();
    if (examiner) measured = examiner->look_if_due(group.node(group.witness()).state().model, now);
    if (now >= next_report) {
      progress(now, sum_up());
      next_report = now + 1;
    }
    return stop.load() > 0 || !measured;
  });
  result.virtual_seconds = group.seconds();
  if (examiner && measured)
    measured = examiner->look(group.node(group.witness()).state().model, result.virtual_seconds);
  if (!measured) return refuse(measured.error());
  result.summary = sum_up();
  if (!options.csv.empty())
    if (auto written = tables.write(options.csv, result.summary, result.virtual_seconds); !written)
      return refuse(written.error());
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group.killed(i)) continue;
    const auto& error = group.node(i).worker().ending().error;
    if (!error || result.exit != ExitCode::ok) continue;
    result.exit = exit_code_for(error->code);
    result.message = result.summary.devices[i].id + ": " + error->message;
  }
  result.real_seconds = to_seconds(real.now() - began);
  return result;
}

}  // namespace rivulet::runtime
