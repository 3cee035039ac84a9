#include "tests/support/kafka_server.h"

#include <signal.h>

#include <cstdlib>

namespace rivulet::testing {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr Duration start_deadline = 60s;

std::string environment_variable(const char* name) {
  const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody here changes it
  return value == nullptr ? std::string() : std::string(value);
}

std::map<std::string, std::string> default_properties(const KafkaServerOptions& options, int broker,
                                                      int controller, const fs::path& data) {
  const std::string port = ":" + std::to_string(broker);
  const std::string listener = "PLAINTEXT://" + (options.listens_on_all ? "0.0.0.0" : options.host) + port;
  const std::string quorum = options.host + ":" + std::to_string(controller);
  return {{"process.roles", "broker,controller"},
          {"node.id", "1"},
          {"controller.quorum.voters", "1@" + quorum},
          {"listeners", listener + ",CONTROLLER://" + quorum},
          {"advertised.listeners", "PLAINTEXT://" + options.host + port},
          {"controller.listener.names", "CONTROLLER"},
          {"inter.broker.listener.name", "PLAINTEXT"},
          {"listener.security.protocol.map", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT"},
          {"log.dirs", data.string()},
          {"auto.create.topics.enable", "false"},
          {"offsets.topic.num.partitions", "1"},
          {"offsets.topic.replication.factor", "1"},
          {"transaction.state.log.num.partitions", "1"},
          {"transaction.state.log.replication.factor", "1"},
          {"transaction.state.log.min.isr", "1"},
          {"group.initial.rebalance.delay.ms", "0"},
          {"broker.session.timeout.ms", "1500"},  // time until a killed broker may register again
          {"broker.heartbeat.interval.ms", "300"},
          {"log.cleaner.dedupe.buffer.size", "2097152"},
          {"num.network.threads", "2"},
          {"num.io.threads", "2"}};
}

std::string to_text(const std::map<std::string, std::string>& properties) {
  std::string text;
  for (const auto& [name, value] : properties) text.append(name).append("=").append(value).append("\n");
  return text;
}

constexpr const char* log_settings =
    "log4j.rootLogger=WARN, out\n"
    "log4j.appender.out=org.apache.log4j.ConsoleAppender\n"
    "log4j.appender.out.layout=org.apache.log4j.PatternLayout\n"
    "log4j.appender.out.layout.ConversionPattern=[%d] %p %m (%c)%n\n";

}  // namespace

fs::path kafka_jars() {
  fs::path cache = environment_variable("RIVULET_CACHE");
  if (cache.empty()) {
    const std::string home = environment_variable("XDG_CACHE_HOME");
    cache = (home.empty() ? fs::path(environment_variable("HOME")) / ".cache" : fs::path(home)) / "rivulet";
  }
  return cache / "kafka-3.9.1";
}

KafkaServer::KafkaServer(const KafkaServerOptions& options) {
  const int port = free_port();
  int controller = free_port();
  while (controller == port) controller = free_port();
  auto properties = default_properties(options, port, controller, directory_.path() / "data");
  for (const auto& [name, value] : options.properties) properties[name] = value;
  brokers_ = options.brokers.empty() ? options.host + ":" + std::to_string(port) : options.brokers;
  properties_file_ = directory_.write("server.properties", to_text(properties));
  directory_.write("log4j.properties", log_settings);
}

// A test's broker lives for seconds: the compiler's first tier and one collector thread start fastest.
ProcessOptions KafkaServer::java(const std::string& main_class) const {
  ProcessOptions options;
  options.command = {"java",
                     "-Xms64m",
                     "-Xmx384m",
                     "-XX:+UseSerialGC",
                     "-XX:TieredStopAtLevel=1",
                     "-Djava.net.preferIPv4Stack=true",
                     "-Dlog4j.configuration=file:" + (directory_.path() / "log4j.properties").string(),
                     "-cp",
                     (kafka_jars() / "*").string(),
                     main_class};
  options.merge_errors = true;
  return options;
}

Status KafkaServer::format() {
  ProcessOptions options = java("kafka.tools.StorageTool");
  for (const char* argument : {"format", "--cluster-id", "cml2dWxldC10ZXN0LTAwMQ", "--config"}) {
    options.command.emplace_back(argument);
  }
  options.command.push_back(properties_file_.string());
  const RunOutput formatted = run(options, start_deadline);
  if (formatted.status.code == 0) return ok();
  return Error{ErrorCode::unavailable, "Kafka's StorageTool failed: " + formatted.output + formatted.errors};
}

Result<std::unique_ptr<KafkaServer>> KafkaServer::start(const KafkaServerOptions& options) {
  if (!fs::exists(kafka_jars() / "kafka_2.13-3.9.1.jar")) {
    return Error{ErrorCode::unavailable,
                 "no Kafka jars in " + kafka_jars().string() + ": run scripts/setup --for tests"};
  }
  std::unique_ptr<KafkaServer> server(new KafkaServer(options));
  const Status formatted = server->format();
  if (!formatted) return formatted.error();
  const Status up = server->restart();
  if (!up) return up.error();
  return server;
}

Status KafkaServer::restart() {
  process_.reset();
  ProcessOptions options = java("kafka.Kafka");
  options.command.push_back(properties_file_.string());
  Result<std::unique_ptr<Process>> started = Process::start(options);
  if (!started) return started.error();
  process_ = std::move(started.value());
  Status answers = wait_for_broker(brokers_, start_deadline);
  if (answers) return answers;
  return Error{ErrorCode::unavailable, answers.error().message + "; it printed: " + log()};
}

RunOutput KafkaServer::tool(const std::string& main_class, const std::vector<std::string>& arguments) const {
  ProcessOptions options = java(main_class);
  options.command.insert(options.command.end(), {"--bootstrap-server", brokers_});
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  return run(options, start_deadline);
}

std::string KafkaServer::log() const {
  return process_ == nullptr ? std::string() : process_->output();
}

void KafkaServer::kill() {
  process_.reset();
}

Status KafkaServer::stop() {
  if (process_ == nullptr) return ok();
  process_->send_signal(SIGTERM);
  const bool ended = process_->wait(start_deadline).has_value();
  process_.reset();
  if (ended) return ok();
  return Error{ErrorCode::timed_out, "Kafka did not stop"};
}

void KafkaServer::suspend() {
  process_->send_signal(SIGSTOP);
}
void KafkaServer::resume() {
  process_->send_signal(SIGCONT);
}

}  // namespace rivulet::testing
