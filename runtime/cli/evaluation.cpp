#include "runtime/cli/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "devices/trainer.h"
#include "runtime/checkpoint/checkpoint_folder.h"
#include "runtime/node/catalog.h"
#include "runtime/node/evaluator.h"
#include "runtime/node/meaning.h"
#include "runtime/node/node.h"
#include "runtime/node/node_config.h"
#include "runtime/process/data_dir.h"
#include "runtime/process/whole_file.h"
#include "runtime/state/agreed_state.h"
#include "runtime/state/safetensors.h"
#include "runtime/state/state_file.h"

namespace rivulet::runtime::cli {
namespace {

/// The configured model's trainer and its compute device.
struct Bench {
  std::unique_ptr<stream::Decoder> decoder;
  std::unique_ptr<devices::Device> device;
  std::unique_ptr<devices::Trainer> trainer;
  StateOwner owner;    ///< this job
  StateOwner any_job;  ///< inspection and export accept any job's state

  [[nodiscard]] Expected expects() const { return {owner, trainer->layout(), *device}; }
  [[nodiscard]] Expected expects_any_job() const { return {any_job, trainer->layout(), *device}; }
};

Result<Bench> make_bench(const Config& config) {
  const auto catalog = builtin_catalog();
  auto decoder = build_decoder(config, catalog);
  if (!decoder) return decoder.error();
  Bench bench;
  bench.decoder = std::move(decoder).value();
  const RowShape& rows = bench.decoder->shape();
  if (const auto needs = needs_of_model(config, catalog, rows); !needs) return needs.error();
  bench.device = devices::make_host_device();
  auto trainer = build_trainer(config, catalog, rows, *bench.device);
  if (!trainer) return trainer.error();
  bench.trainer = std::move(trainer).value();
  bench.owner = owner_of(config, *bench.decoder);
  bench.any_job = {bench.owner.model, {}, {}, bench.owner.meaning};
  return bench;
}

/// Returns metadata for users who have only the file: inputs with order and units, and outputs. Lists are
/// JSON.
std::vector<std::pair<std::string, std::string>> notes_of(const Config& config,
                                                          const stream::Decoder& decoder) {
  using Json = nlohmann::ordered_json;
  std::vector<std::pair<std::string, std::string>> notes;
  if (const auto features = feature_names(config, decoder); !features.empty())
    notes.emplace_back("features", Json(features).dump());
  notes.emplace_back("shape", Json(decoder.shape().shape).dump());
  notes.emplace_back("units", Json{{"scale", config.decode.scale}, {"shift", config.decode.shift}}.dump());
  if (!config.decode.target.empty()) notes.emplace_back("target", config.decode.target);
  if (const auto labels = class_labels(config); !labels.empty())
    notes.emplace_back("classes", Json(labels).dump());
  return notes;
}

Result<DecodedState> read_checked(const Expected& expected, const std::string& file) {
  auto read = read_state_file(file, expected);
  if (!read) return read;
  if (const Status good = check_digest(read.value(), expected.device); !good)
    return Error{good.error().code, fmt::format("{}: {}", file, good.error().message)};
  return read;
}

/// Returns the checkpoint folder for `path`: itself, or the one in a device's data directory.
std::string checkpoint_folder_of(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(checkpoints_in(path), error) ? checkpoints_in(path) : path;
}

StateFacts facts_of(DecodedState read) {
  return {read.state.stamp, read.digest, read.state.rows, std::move(read.state.partitions)};
}

/// Reads a file, or the newest usable one of a folder.
Result<DecodedState> read_any(const Bench& bench, const std::string& from) {
  std::error_code error;
  if (!std::filesystem::is_directory(from, error)) return read_checked(bench.expects_any_job(), from);
  std::vector<std::string> problems;
  const CheckpointFolder folder(checkpoint_folder_of(from));
  auto newest = folder.newest(bench.expects_any_job(), problems);
  if (newest) return std::move(*newest);
  if (const auto misfit = folder.misfit(bench.expects_any_job()))
    return Error{ErrorCode::invalid_config, *misfit};
  std::string why;
  for (const auto& problem : problems) why += "; " + problem;
  return Error{ErrorCode::io, fmt::format("{}: no usable checkpoint{}", from, why)};
}

using Scores = std::variant<RegressionScores, ClassScores>;

Scores empty_scores(const Config& config) {
  if (!is_classification(config)) return RegressionScores();
  return ClassScores(class_names(config));
}

/// Collects the model's predictions in a second pass over the rows.
Status score_all(devices::Trainer& trainer, const devices::ModelState& model, const HeldOut& data,
                 Scores& scores) {
  constexpr std::size_t rows_at_once = 250;
  for (std::size_t at = 0; at < data.rows(); at += rows_at_once) {
    const auto part = data.slice(at, std::min(rows_at_once, data.rows() - at));
    const auto outputs = trainer.predict(devices::averaged(model), part);
    if (!outputs) return outputs.error();
    std::visit([&](auto& s) { s.add(outputs.value(), part.targets); }, scores);
  }
  return ok();
}

}  // namespace

Status check_model(const LoadedConfig& loaded) {
  const auto bench = make_bench(loaded.config);
  if (!bench) return bench.error();
  return ok();
}

Result<Digest> digest_of_state_file(const LoadedConfig& loaded, const std::string& state_file) {
  auto bench = make_bench(loaded.config);
  if (!bench) return bench.error();
  const auto read = read_checked(bench.value().expects(), state_file);
  if (!read) return read.error();
  return read.value().digest;
}

Result<StateFacts> inspect_state_file(const LoadedConfig& loaded, const std::string& state_file) {
  auto bench = make_bench(loaded.config);
  if (!bench) return bench.error();
  auto read = read_checked(bench.value().expects(), state_file);
  if (!read) return read.error();
  return facts_of(std::move(read).value());
}

Result<Exported> export_state_file(const LoadedConfig& loaded, const std::string& from,
                                   const std::string& out, const std::string& optimizer) {
  auto bench = make_bench(loaded.config);
  if (!bench) return bench.error();
  auto read = read_any(bench.value(), from);
  if (!read) return read.error();
  const DecodedState& decoded = read.value();
  const ExportNotes notes{loaded.config.model.name, notes_of(loaded.config, *bench.value().decoder)};
  const auto model = exported_model(decoded.state);
  const auto bytes = encode_safetensors(notes, decoded.state, model, decoded.digest);
  if (auto written = write_whole_file(out, bytes); !written) return written.error();
  if (!optimizer.empty()) {
    const auto arrays = encode_optimizer(notes, decoded.state, decoded.digest);
    if (auto written = write_whole_file(optimizer, arrays); !written) return written.error();
  }
  return Exported{facts_of(std::move(read).value()), model.normalization};
}

namespace {

/// Returns a device's checkpoint folder. While `held` exists, the device cannot run.
Result<std::string> take_checkpoints(const Config& config, DataDir& held) {
  std::string folder = checkpoints_in(config.device.data_dir);
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    return Error{ErrorCode::io,
                 folder + " does not exist: no device saved a checkpoint in this data directory"};
  if (auto taken = held.take(config.device.data_dir, {config.job.name, {}}); !taken) return taken.error();
  return folder;
}

Status check_is_in(const std::string& folder, const std::string& file) {
  std::error_code error;
  const auto parent = std::filesystem::absolute(file, error).parent_path();
  if (std::filesystem::equivalent(parent, folder, error)) return ok();
  return Error{ErrorCode::usage, fmt::format("{} is not in {}: copy it there first", file, folder)};
}

}  // namespace

Result<Restored> restore_checkpoint(const LoadedConfig& loaded, const std::string& file) {
  DataDir held;
  const auto path = take_checkpoints(loaded.config, held);
  if (!path) return path.error();
  if (auto fits = check_is_in(path.value(), file); !fits) return fits.error();
  auto bench = make_bench(loaded.config);
  if (!bench) return bench.error();
  const Expected expected = bench.value().expects();
  auto to = read_checked(expected, file);
  if (!to) return to.error();
  CheckpointFolder folder(path.value());
  Restored done{facts_of(std::move(to).value()), file, {}, {}, {}};
  done.newest = done.to.stamp;
  std::vector<std::string> problems;
  if (auto newest = folder.newest(expected, problems)) {
    done.newest = newest->damaged ? newest->damaged->stamp : newest->state.stamp;
    if (newest->state.stamp > done.to.stamp) done.from = facts_of(std::move(*newest));
  }
  auto gone = folder.roll_back(done.to.stamp);
  if (!gone) return gone.error();
  done.gone = std::move(gone).value();
  return done;
}

Result<PruneReport> prune_checkpoints(const LoadedConfig& loaded, std::size_t keep) {
  DataDir held;
  const auto folder = take_checkpoints(loaded.config, held);
  if (!folder) return folder.error();
  auto bench = make_bench(loaded.config);
  if (!bench) return bench.error();
  PruneReport report;
  report.files =
      CheckpointFolder(folder.value()).prune_checked(keep, bench.value().expects(), report.problems);
  return report;
}

Result<Evaluation> evaluate_state_file(const LoadedConfig& loaded, const std::string& state_file,
                                       const std::string& data) {
  auto bench = make_bench(loaded.config);
  if (!bench) return bench.error();
  const auto read = read_checked(bench.value().expects_any_job(), state_file);
  if (!read) return read.error();
  constexpr std::size_t all_rows = std::size_t{1} << 24U;
  const auto held_out = HeldOut::open(loaded.config, builtin_catalog(), data, all_rows);
  if (!held_out) return held_out.error();
  const auto report = evaluate_all(*bench.value().trainer, read.value().state.model, *held_out.value());
  if (!report) return report.error();
  Evaluation result;
  result.digest = read.value().digest;
  result.parameters = bench.value().trainer->layout().parameters;
  result.rows = report.value().rows;
  const auto rows = static_cast<double>(result.rows);  // positive: opening without rows fails
  result.loss = report.value().loss_sum / rows;
  result.dropped = held_out.value()->dropped();
  result.scores = empty_scores(loaded.config);
  if (const auto scored =
          score_all(*bench.value().trainer, read.value().state.model, *held_out.value(), result.scores);
      !scored)
    return scored.error();
  return result;
}

}  // namespace rivulet::runtime::cli
