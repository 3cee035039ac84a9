#include "runtime/wiring/simulate.h"

#include <fmt/format.h>

#include <filesystem>

#include "runtime/node/evaluator.h"
#include "runtime/node/node_config.h"
#include "runtime/wiring/simulation.h"
#include "runtime/wiring/simulation_limits.h"
#include "runtime/wiring/simulation_results.h"
#include "runtime/wiring/simulation_waiting.h"

namespace rivulet::runtime {
namespace {

/// Periodically evaluates node 0's model on held-out rows: all devices have identical bits.
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
  /// Also records every measurement in `tables`.
  void write_into(ResultTables& tables) { tables_ = &tables; }
  void report(Summary& s) const {
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

/// Records how the simulation ended; keeps the first failure.
void end_with(SimulateResult& result, ExitCode exit, const std::string& message) {
  if (result.exit != ExitCode::ok) return;
  result.exit = exit;
  result.message = message;
}

SimulateResult refuse(const Error& error) {
  SimulateResult result;
  if (error.code == ErrorCode::cancelled)
    end_with(result, ExitCode::failure, "interrupted before the first simulated second");
  else
    end_with(result, exit_code_for(error.code), error.message);
  return result;
}

/// Only a folder has a test split; the rows of a single file are trained on.
std::string held_out_of(const SimulateOptions& options, const Config& config) {
  if (!options.held_out.empty()) return options.held_out;
  if (!config.evaluate.held_out_path.empty()) return config.evaluate.held_out_path;
  return std::filesystem::is_directory(options.data) ? options.data : "";
}

bool measures_accuracy(const SimulateOptions& options, const Config& config) {
  return config.train.loss == "cross_entropy" && !options.timing_only;
}

Status check_options(const SimulateOptions& options, const Config& config) {
  if (auto fits = check_scenario(options, config.job.devices.max); !fits) return fits;
  if (!options.held_out.empty() && !measures_accuracy(options, config))
    return Error{ErrorCode::usage,
                 options.timing_only
                     ? "--held-out needs training, which --timing-only disables"
                     : "--held-out measures classification accuracy, which is undefined for train.loss = \"" +
                           config.train.loss + "\" (regression)"};
  return ok();
}

void take_prequential(SimulatedGroup& group, Summary& s) {
  Node& node = group.node(group.witness());
  const auto& status = node.status();
  if (const double accuracy = status.accuracy.load(); accuracy >= 0) s.accuracy = accuracy;
  s.time_to_accuracy_s = node.worker().time_to_accuracy().reached();
}

/// A prepared simulation: the group, its measurements and its result tables.
class Play {
 public:
  using Progress = std::function<void(double, const Summary&)>;
  Play(const LoadedConfig& given, const SimulateOptions& options)
      : loaded_(given), options_(options), tables_([this] { return group_->seconds(); }) {}

  Status prepare(const StopRequest& stop) {
    Config& config = loaded_.config;
    if (auto fits = check_options(options_, config); !fits) return fits;
    if (options_.data.empty())
      if (auto fits = expect_synthetic_rows(config, builtin_catalog()); !fits) return fits;
    SimulatedParts parts;
    parts.stop = &stop;
    if (!options_.csv.empty()) {
      if (auto ready = ResultTables::prepare(options_.csv); !ready) return ready;
      parts.decisions = [this](std::size_t) { return tables_.log(); };
    }
    auto built = SimulatedGroup::build(loaded_, options_, std::move(parts));
    if (!built) return built.error();
    group_ = std::move(built).value();
    return make_examiner();
  }

  /// Errors: those of evaluating held-out rows.
  Result<SimulateResult> run(const Progress& progress, StopRequest& stop) {
    SimulateResult result;
    Status measured = ok();
    WaitingWatch watch(options_, loaded_.config.sync.deadline);
    std::optional<std::string> waits;
    double next_report = 1;
    result.events = group_->run_until([&] {
      const double now = group_->seconds();
      if (examiner_) measured = examiner_->look_if_due(group_->node(group_->witness()).state().model, now);
      if (now >= next_report) {
        progress(now, sum_up());
        next_report = now + 1;
        waits = watch.look(*group_);
      }
      return stop.load() > 0 || !measured || waits;
    });
    result.virtual_seconds = group_->seconds();
    if (examiner_ && measured)
      measured = examiner_->look(group_->node(group_->witness()).state().model, result.virtual_seconds);
    if (!measured) return measured.error();
    result.summary = sum_up();
    if (waits) end_with(result, ExitCode::failure, *waits);
    if (stop.load() > 0)
      end_with(result, ExitCode::failure,
               fmt::format("interrupted at second {:.1f}", result.virtual_seconds));
    report_endings(result);
    write_tables(result);
    return result;
  }

 private:
  Status make_examiner() {
    const Config& config = loaded_.config;
    const std::string held_out = held_out_of(options_, config);
    if (held_out.empty() || !measures_accuracy(options_, config)) return ok();
    auto made =
        Examiner::make(config, builtin_catalog(), held_out, to_seconds(config.evaluate.held_out_every));
    if (!made) return made.error();
    examiner_ = std::move(made).value();
    if (!options_.csv.empty()) examiner_->write_into(tables_);
    return ok();
  }
  Summary sum_up() {
    Summary s = group_->summary();
    if (measures_accuracy(options_, loaded_.config)) take_prequential(*group_, s);
    if (examiner_) examiner_->report(s);
    return s;
  }
  /// Reports the error of a device first, then a device that was killed and not restarted.
  void report_endings(SimulateResult& result) {
    const auto& devices = result.summary.devices;
    for (std::size_t i = 0; i < group_->size(); ++i) {
      if (group_->killed(i)) continue;
      const auto& error = group_->node(i).worker().ending().error;
      if (error) end_with(result, exit_code_for(error->code), devices[i].id + ": " + error->message);
    }
    for (std::size_t i = 0; i < group_->size(); ++i)
      if (group_->killed(i))
        end_with(result, ExitCode::failure,
                 devices[i].id + " was killed and not restarted, and no device was left to continue");
  }
  void write_tables(SimulateResult& result) {
    if (options_.csv.empty()) return;
    const auto written = tables_.write(options_.csv, result.summary, result.virtual_seconds);
    if (!written) end_with(result, exit_code_for(written.error().code), written.error().message);
  }

  LoadedConfig loaded_;
  const SimulateOptions& options_;
  ResultTables tables_;
  std::unique_ptr<SimulatedGroup> group_;
  std::unique_ptr<Examiner> examiner_;
};

}  // namespace

SimulateResult simulate(const LoadedConfig& loaded, const SimulateOptions& options,
                        const std::function<void(double, const Summary&)>& progress, StopRequest& stop) {
  const RealClock real;
  const TimePoint began = real.now();
  devices::prepare_process(loaded.config.device.threads);
  Play play(loaded, options);
  if (auto prepared = play.prepare(stop); !prepared) return refuse(prepared.error());
  auto played = play.run(progress, stop);
  if (!played) return refuse(played.error());
  played.value().real_seconds = to_seconds(real.now() - began);
  return std::move(played).value();
}

}  // namespace rivulet::runtime
