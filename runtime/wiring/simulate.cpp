#include "runtime/simulate.h"

#include <filesystem>

#include "runtime/evaluator.h"
#include "runtime/node_config.h"
#include "runtime/wiring/simulation.h"
#include "runtime/wiring/simulation_limits.h"
#include "runtime/wiring/simulation_results.h"
#include "runtime/wiring/simulation_waiting.h"

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

/// What went wrong first is how it ended.
void end_with(SimulateResult& result, ExitCode exit, const std::string& message) {
  if (result.exit != ExitCode::ok) return;
  result.exit = exit;
  result.message = message;
}

SimulateResult refuse(const Error& error) {
  SimulateResult result;
  end_with(result, exit_code_for(error.code), error.message);
  return result;
}

/// Only a folder has a test split; the rows of a single file are trained on, so they measure nothing.
std::string held_out_of(const SimulateOptions& options, const Config& config) {
  if (!options.held_out.empty()) return options.held_out;
  if (!config.evaluate.held_out_path.empty()) return config.evaluate.held_out_path;
  return std::filesystem::is_directory(options.data) ? options.data : "";
}

bool measures_accuracy(const SimulateOptions& options, const Config& config) {
  return config.train.loss == "cross_entropy" && !options.timing_only;
}

Status check_options(const SimulateOptions& options, const Config& config) {
  if (auto fits = check_scenario(options, config.job.devices); !fits) return fits;
  if (!options.held_out.empty() && !measures_accuracy(options, config))
    return Error{
        ErrorCode::usage,
        options.timing_only
            ? "--held-out measures a model that learns; with --timing-only nothing does"
            : "--held-out measures accuracy, which train.loss = \"" + config.train.loss + "\" has none of"};
  return ok();
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
  if (auto fits = check_options(options, loaded.config); !fits) return refuse(fits.error());
  if (options.data.empty())
    if (auto fits = expect_synthetic_rows(loaded.config, builtin_catalog()); !fits)
      return refuse(fits.error());
  devices::prepare_process(loaded.config.device.threads);
  SimulatedParts parts;
  SimulatedGroup* running = nullptr;
  ResultTables tables([&] { return running->seconds(); });
  if (!options.csv.empty()) {
    if (auto ready = ResultTables::prepare(options.csv); !ready) return refuse(ready.error());
    parts.decisions = [&](std::size_t) { return tables.log(); };
  }
  auto built = SimulatedGroup::build(loaded, options, std::move(parts));
  if (!built) return refuse(built.error());
  SimulatedGroup& group = *built.value();
  running = &group;
  std::unique_ptr<Examiner> examiner;
  const bool classes = measures_accuracy(options, loaded.config);
  const std::string held_out = held_out_of(options, loaded.config);
  if (!held_out.empty() && classes) {
    auto made = Examiner::make(loaded.config, builtin_catalog(), held_out,
                               to_seconds(loaded.config.evaluate.held_out_every));
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
  WaitingWatch watch(options, loaded.config.sync.deadline);
  std::optional<std::string> waits;
  double next_report = 1;
  result.events = group.run_until([&] {
    const double now = group.seconds();
    if (examiner) measured = examiner->look_if_due(group.node(group.witness()).state().model, now);
    if (now >= next_report) {
      progress(now, sum_up());
      next_report = now + 1;
      waits = watch.look(group);
    }
    return stop.load() > 0 || !measured || waits;
  });
  result.virtual_seconds = group.seconds();
  if (examiner && measured)
    measured = examiner->look(group.node(group.witness()).state().model, result.virtual_seconds);
  if (!measured) return refuse(measured.error());
  result.summary = sum_up();
  if (!options.csv.empty())
    if (auto written = tables.write(options.csv, result.summary, result.virtual_seconds); !written)
      end_with(result, exit_code_for(written.error().code), written.error().message);
  if (waits) end_with(result, ExitCode::failure, *waits);
  if (group.all_killed())
    end_with(result, ExitCode::failure, "every device was killed, and no line of a script starts one again");
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (group.killed(i)) continue;
    const auto& error = group.node(i).worker().ending().error;
    if (error)
      end_with(result, exit_code_for(error->code), result.summary.devices[i].id + ": " + error->message);
  }
  result.real_seconds = to_seconds(real.now() - began);
  return result;
}

}  // namespace rivulet::runtime
