// Wiring of a real device: real clock, real stream, real transport, one thread per agent.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>

#include "core/rng.h"
#include "devices/sensors.h"
#include "runtime/config/secrets.h"
#include "runtime/node/evaluator.h"
#include "runtime/node/memory_plan.h"
#include "runtime/node/new_run.h"
#include "runtime/node/node.h"
#include "runtime/node/node_config.h"
#include "runtime/node/own_folder.h"
#include "runtime/node/peer_address.h"
#include "runtime/node/run.h"
#include "runtime/process/runner.h"
#include "runtime/process/service_manager.h"
#include "runtime/process/watchdog.h"
#include "runtime/state/state_file.h"
#include "runtime/status/board_watch.h"
#include "runtime/status/group_json.h"
#include "runtime/status/http/http_server.h"
#include "runtime/status/metrics/build_info.h"
#include "runtime/status/metrics/process_metrics.h"
#include "runtime/status/metrics/prometheus_sink.h"
#include "runtime/status/page/status_page.h"
#include "runtime/status/recent_rounds.h"
#include "runtime/status/status_json.h"
#include "runtime/wiring/node_dependencies.h"
#include "runtime/wiring/production.h"
#include "stream/open.h"
#include "sync/transport/gloo_transport.h"
#include "sync/transport/memory_transport.h"

namespace rivulet::runtime {
namespace {

std::uint64_t fresh_nonce(const std::string& id) {
  return derive_seed(static_cast<std::uint64_t>(unix_time_ms()), id, static_cast<std::uint64_t>(getpid()));
}

/// Objects that outlive the node or that it refers to, in order of construction.
struct Process {
  DataDir data_dir;
  RealClock clock;
  std::unique_ptr<PrometheusSink> metrics = make_prometheus_sink();
  std::unique_ptr<Logger> log;
  MemoryPlan memory;
  sync::membership::MemoryLog memory_log;
  sync::MemoryNetwork alone;
  std::atomic<std::int64_t> comm_beat_ns{0};
  ThreadRunner ingest_thread;
  ThreadRunner train_thread;
  ThreadRunner evaluate_thread;
  ThreadRunner checkpoint_thread;  ///< not watched: a slow disk delays copies, not the device
  ThreadRunner donor_thread;       ///< not watched: it encodes large states
  ThreadRunner board_thread;       ///< not watched: a sensor read may block
  ThreadRunner topics_thread;      ///< not watched: a broker's answer may take long
  RecentRounds board;
  std::optional<StateOwner> owner;  ///< owner of the states if rows are synthetic
  std::unique_ptr<Node> node;
  std::unique_ptr<devices::Device> evaluate_device;
  std::unique_ptr<devices::Trainer> evaluate_trainer;
  std::unique_ptr<HeldOut> held_out;
  std::unique_ptr<Evaluator> evaluator;
  std::unique_ptr<BoardWatch> sensors;
  std::unique_ptr<TopicWatch> topics;
  std::unique_ptr<HttpServer> http;
};

/// Runs before anything from the old run is loaded.
Status start_over(const Config& config, Logger& log) {
  const std::string folder = checkpoints_in(config.device.data_dir);
  if (!log_is_own(config, false)) return prepare_new_run(config, folder, log, [] { usleep(10'000); });
  const auto aside = keep_aside(folder);
  return aside ? ok() : aside.error();
}

/// Runs before anything large is allocated.
Status plan_within_cap(Process& p, const Config& config, const Catalog& catalog, const StopRequest& stop) {
  auto memory = plan_memory(config, catalog, &stop);
  if (!memory) return memory.error();
  p.memory = std::move(memory).value();
  if (auto fits = p.memory.check(); !fits) return fits;
  p.memory.publish(*p.metrics);
  p.log->write(Level::info, "memory planned", {{"needs", p.memory.text()}});
  return ok();
}

Status build(Process& p, const LoadedConfig& loaded, const RunOptions& options, const Catalog& catalog,
             const StopRequest& leave, const StopRequest& stop) {
  const Config& config = loaded.config;
  auto log = make_logger(config.log.level, config.log.format, *p.metrics);
  if (!log) return log.error();
  p.log = std::move(log).value();
  if (auto taken = take_own_folder(p.data_dir, config, !options.dry_run); !taken) return taken;
  if (auto fits = plan_within_cap(p, config, catalog, stop); !fits) return fits;
  if (options.new_run)
    if (auto prepared = start_over(config, *p.log); !prepared) return prepared;
  auto source = open_source(config, options.dry_run, p.memory, p.clock, *p.metrics);
  if (!source) return source.error();
  auto ordered = open_log(config, p.memory, options.dry_run, p.memory_log);
  if (!ordered) return ordered.error();
  const auto wires = open_wires(config, p.alone, p.clock, p.comm_beat_ns);
  if (!wires) return wires.error();
  auto decisions = open_decisions(config, options.dry_run);
  if (!decisions) return decisions.error();
  auto device = devices::make_device(config.device.type);
  if (!device) return device.error();
  p.log->write(Level::info, "computing", {{"on", std::string(device.value()->name())}});
  auto node = Node::build(
      loaded, options, catalog,
      NodeDependencies{
          .ingest_clock = p.clock,
          .worker_clock = p.clock,
          .ingest_wake = p.ingest_thread,
          .worker_wake = p.train_thread,
          .source = std::move(source).value(),
          .device = std::move(device).value(),
          .log = std::move(ordered).value(),
          .connect = wires.value().mesh,
          .metrics = *p.metrics,
          .logger = *p.log,
          .decisions = show_on_board(std::move(decisions).value(), p.board, *p.metrics),
          .stop = leave,
          .poll_wait = std::chrono::milliseconds(5),
          .nonce_seed = fresh_nonce(config.device.id),
          .age_at_start_s = process_age_seconds(),
          .checkpoint_wake = options.dry_run ? nullptr : &p.checkpoint_thread,
          .checkpoints = checkpoints_in(config.device.data_dir),
          .copies = CopyDependencies{p.clock, p.donor_thread, wires.value().copies, wires.value().copies},
          .owner = p.owner,
          .own_log = log_is_own(config, options.dry_run),
          .snapshots = measures_held_out(config)});
  if (!node) return node.error();
  p.node = std::move(node).value();
  return ok();
}

Status add_evaluator(Process& p, const LoadedConfig& loaded, const Catalog& catalog) {
  const Config& config = loaded.config;
  if (!measures_held_out(config)) return ok();
  auto data = HeldOut::open(config, catalog, config.evaluate.held_out_path, p.memory.held_out_rows);
  if (!data) return data.error();
  p.held_out = std::move(data).value();
  p.evaluate_device = devices::make_host_device();  // the train thread is the only user of a GPU
  auto trainer = build_trainer(config, catalog, p.held_out->shape(), *p.evaluate_device);
  if (!trainer) return trainer.error();
  p.evaluate_trainer = std::move(trainer).value();
  p.evaluator = std::make_unique<Evaluator>(
      Evaluator::Parts{p.clock, *p.evaluate_trainer, *p.held_out, p.node->snapshots(), p.node->status(),
                       *p.metrics, *p.log, config.evaluate.held_out_every, class_names(config)});
  return ok();
}

/// True if every thread of this process has stepped within `limit`; independent of the broker.
bool all_alive(const Process& p, Duration limit, std::string& why) {
  const std::int64_t now = p.clock.now().time_since_epoch().count();
  const auto stuck = [&](const char* name, std::int64_t beat) {
    if (beat == 0 || now - beat <= limit.count()) return false;  // 0: not started, or ended
    why = fmt::format("thread {} has made no progress for {:.1f} s", name,
                      static_cast<double>(now - beat) / 1e9);
    return true;
  };
  return !stuck("ingest", p.ingest_thread.beat_ns()) && !stuck("train", p.train_thread.beat_ns()) &&
         !stuck("evaluate", p.evaluate_thread.beat_ns()) &&
         !stuck("comm", p.comm_beat_ns.load(std::memory_order_relaxed));
}

Status add_http(Process& p, const Config& config) {
  if (config.http.listen == "off" || config.http.listen.empty()) return ok();
  p.node->status().keep_history();
  const NodeStatusText text{config.device.id, config.job.name, config.model.name, config.source.topics};
  HttpServer::Pages pages;
  pages.metrics = [&p] { return p.metrics->scrape(); };
  pages.live = [&p, limit = config.watchdog.deadline](std::string& why) { return all_alive(p, limit, why); };
  // Also checks all threads, because the thread that evaluates health may be stuck.
  pages.ready = [&p, limit = config.watchdog.deadline / 2](std::string& why) {
    const Health health = p.node->status().health();
    why = health.why_not();
    return health.ready() && all_alive(p, limit, why);
  };
  pages.status_json = [&p, text] { return status_json(p.node->status(), text); };
  pages.group_json = [&p] { return group_json(p.board.read()); };
  pages.page = [&p, text](const std::string& nonce) {
    return status_page(status_json(p.node->status(), text), group_json(p.board.read()), nonce,
                       p.node->status().history());
  };
  const auto access =
      config.http.token_file.empty() ? Result<Access>(Access()) : Access::from_file(config.http.token_file);
  if (!access) return access.error();
  auto server = HttpServer::start(config.http.listen, std::move(pages), access.value());
  if (!server) return server.error();
  p.http = std::move(server).value();
  return ok();
}

/// "127.0.0.1:" of "127.0.0.1:0": the port is known only after opening.
std::string host_of(const std::string& listen) {
  return listen.substr(0, listen.rfind(':') + 1);
}

void log_identity(Process& p, const Config& config) {
  publish_build_info(*p.metrics, build_info(devices::numeric_library_facts()));
  publish_device_info(*p.metrics, config.device.id, config.model.name, config.job.name);
  publish_group_sizes(*p.metrics, config.job.devices);
  p.log->write(Level::info, "starting",
               {{"job", config.job.name},
                {"device", config.device.id},
                {"model", config.model.name},
                {"http", p.http ? host_of(config.http.listen) + std::to_string(p.http->port()) : "off"}});
  warn_of_networks(config, *p.log);
}

/// Waits until the worker ends or the stream fails. Returns the ingest thread's error if it ended first.
std::optional<Error> wait_for_end(Process& p, const Watchdog& watchdog, StopRequest& leave,
                                  const StopRequest& stop, const RunOptions& options) {
  std::optional<Error> broken;
  auto manager = ServiceManager::from_environment();
  manager.ready();
  while (!p.train_thread.finished()) {
    if (watchdog.content()) manager.alive(p.clock.now());
    const std::string why = p.node->status().health().why_not();
    manager.notify(why.empty() ? name_of(p.node->status().state.load()) : std::string_view(why));
    if (options.watch) options.watch(p.node->status(), p.clock.now());
    if (stop.load() > leave.load()) {
      manager.stopping();
      leave.store(stop.load());
      p.train_thread.notify();
    }
    if (p.ingest_thread.finished() && !broken) {
      broken = p.node->ingest().failure();
      leave.store(1);
      p.train_thread.notify();
    }
    usleep(20'000);
  }
  manager.stopping();
  return broken;
}

/// Commits the offsets of the last second. The source waits for the broker's answers in its destructor.
void commit_the_rest(Process& p) {
  std::vector<NextOffset> news;
  p.node->commits().take_news(news);
  if (news.empty()) return;
  if (auto committed = p.node->source().commit(news); !committed)
    p.log->write(Level::warn, "the last offsets could not be committed",
                 {{"error", committed.error().message}});
}

/// Writes the final state if this process entered a group: a device that rejoined just before the end holds
/// the agreed state without having trained. A checkpoint that no group has confirmed must not replace the
/// file of an earlier run.
void leave_final_state(Process& p, const LoadedConfig& loaded, const Result<Digest>& digest,
                       RunResult& result) {
  const bool agreed = p.node->worker().entered_group() && p.node->state().stamp.step > 0;
  if (!agreed || !digest) return;
  const std::string path = loaded.config.device.data_dir + "/final.state";
  auto written = write_state_file(path, p.node->owner(), p.node->state(), digest.value());
  if (written) {
    result.state_file = path;
    return;
  }
  result.exit = ExitCode::failure;
  result.message = written.error().message;
}

RunResult sum_up(Process& p, const LoadedConfig& loaded, const RunOptions& options) {
  RunResult result;
  NodeStatus& status = p.node->status();
  auto digest = digest_of(p.node->state(), p.node->device());
  if (digest) status.set_digest(digest.value().hex());
  while (!status.publish_deferred()) usleep(100);  // a reader holds the status
  DeviceSummary device = make_device_summary(status, loaded.config.device.id);
  Summary& s = result.summary;
  s.rounds = p.node->state().stamp.step;
  const double held_out = status.held_out_accuracy.load();
  if (held_out >= 0)
    s.accuracy = held_out;
  else if (const double before_training = status.accuracy.load(); before_training >= 0)
    s.accuracy = before_training;
  const double seconds = status.seconds_training.load();
  s.rows_per_s = seconds > 0 ? static_cast<double>(p.node->worker().rows_since_entry()) / seconds : 0;
  s.time_to_accuracy_s =
      p.evaluator ? p.evaluator->time_to_accuracy().reached() : p.node->worker().time_to_accuracy().reached();
  s.digests_compared = status.digests_compared.load();
  const auto& error = p.node->worker().ending().error;
  s.parameters_equal = !error || error->code != ErrorCode::diverged;
  s.devices.push_back(std::move(device));
  if (!options.dry_run) leave_final_state(p, loaded, digest, result);
  return result;
}

RunResult refuse(const Error& error) {
  RunResult result;
  result.exit = exit_code_for(error.code);
  result.message = error.message;
  return result;
}

void watch_threads(Process& p, Watchdog& watchdog) {
  watchdog.watch({"ingest", [&p] { return p.ingest_thread.beat_ns(); }});
  watchdog.watch({"train", [&p] { return p.train_thread.beat_ns(); }});
  watchdog.watch({"evaluate", [&p] { return p.evaluate_thread.beat_ns(); }});
  watchdog.watch({"comm", [&p] { return p.comm_beat_ns.load(std::memory_order_relaxed); }});
}

void start_threads(Process& p) {
  if (p.http)  // only the HTTP pages publish it
    p.sensors = std::make_unique<BoardWatch>(BoardWatch::Parts{p.clock, devices::Sensors("/"), *p.metrics});
  p.ingest_thread.start(p.node->ingest(), p.clock);
  p.train_thread.start(p.node->worker(), p.clock);
  if (p.evaluator) p.evaluate_thread.start(*p.evaluator, p.clock);
  if (p.topics) p.topics_thread.start(*p.topics, p.clock);
  if (p.sensors) p.board_thread.start(*p.sensors, p.clock);
  if (p.node->donor() != nullptr) p.donor_thread.start(*p.node->donor(), p.clock);
  if (p.node->checkpoints() != nullptr) p.checkpoint_thread.start(*p.node->checkpoints(), p.clock);
}

void join_threads(Process& p, Watchdog& watchdog) {
  p.train_thread.join();
  p.ingest_thread.stop();
  p.ingest_thread.join();
  watchdog.stop();
  for (ThreadRunner* thread :
       {&p.evaluate_thread, &p.checkpoint_thread, &p.board_thread, &p.topics_thread, &p.donor_thread}) {
    thread->stop();
    thread->join();
  }
}

LoadedConfig as_dry_run(LoadedConfig loaded) {
  loaded.config.job.devices = 1;  // reads only its own stream; invisible to a live group
  return loaded;
}

/// Its message may quote secrets, which the caller masks.
RunResult run_unmasked(const LoadedConfig& given, const RunOptions& options, const Catalog& catalog,
                       StopRequest& stop) {
  LoadedConfig loaded = options.dry_run ? as_dry_run(given) : given;
  StopRequest leave{0};
  Process p;
  if (loaded.config.source.type == "synthetic") {
    const auto decoder = build_decoder(loaded.config, catalog);
    if (!decoder) return refuse(decoder.error());
    p.owner = owner_of(loaded.config, *decoder.value());
    if (auto fits = expect_synthetic_rows(loaded.config, catalog); !fits) return refuse(fits.error());
  }
  const Config& config = loaded.config;
  devices::prepare_process(config.device.threads);
  if (auto built = build(p, loaded, options, catalog, leave, stop); !built) return refuse(built.error());
  if (auto added = add_evaluator(p, loaded, catalog); !added) return refuse(added.error());
  if (auto added = add_http(p, config); !added) return refuse(added.error());
  p.topics = make_topic_watch(config, options.dry_run, p.clock, p.node->status());
  log_identity(p, config);
  Watchdog watchdog(config.watchdog.deadline);
  watch_threads(p, watchdog);
  start_threads(p);
  watchdog.start();
  const auto broken = wait_for_end(p, watchdog, leave, stop, options);
  join_threads(p, watchdog);
  if (!options.dry_run) commit_the_rest(p);
  RunResult result = sum_up(p, loaded, options);
  const auto& error = broken ? broken : p.node->worker().ending().error;
  if (error) {
    result.exit = exit_code_for(error->code);
    result.message = error->message;
  }
  return result;
}

}  // namespace

RunResult run_device(const LoadedConfig& loaded, const RunOptions& options, StopRequest& stop) {
  return run_device_with(loaded, options, builtin_catalog(), stop);
}

RunResult run_device_with(const LoadedConfig& loaded, const RunOptions& options, const Catalog& catalog,
                          StopRequest& stop) {
  RunResult result = run_unmasked(loaded, options, catalog, stop);
  result.message = masked(std::move(result.message), loaded.secrets);
  return result;
}

std::vector<std::pair<std::string, std::string>> production_object_types(const LoadedConfig& loaded) {
  StopRequest stop{0};
  Process p;
  if (auto built = build(p, loaded, {}, builtin_catalog(), stop, stop); !built)
    return {{"error", built.error().message}};
  return p.node->object_types();
}

}  // namespace rivulet::runtime
