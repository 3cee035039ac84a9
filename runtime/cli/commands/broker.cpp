#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <ostream>
#include <set>

#include "runtime/cli/child.h"
#include "runtime/cli/command.h"
#include "runtime/cli/text.h"
#include "runtime/process/signals.h"
#include "runtime/process/stop.h"
#include "stream/embedded_broker.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* broker_footer = R"(Examples:
  rivulet broker --job mnist --topic mnist:4        runs until Ctrl-C; then, in a second terminal:
  rivulet feed examples/mnist/data --brokers 127.0.0.1:PORT --topic mnist --rates 400,200 --job mnist --pace
  rivulet run --config device.toml --brokers 127.0.0.1:PORT

The first line on stdout is bootstrap.servers=127.0.0.1:PORT. The broker also creates the job's control topic.
For experiments only: in memory, loopback only, no security, keeps about 5 MB per partition.)";

Result<stream::EmbeddedBroker::Topic> parse_topic(const std::string& text) {
  const auto colon = text.rfind(':');
  const auto digits = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool number =
      !digits.empty() && digits.size() <= 4 && digits.find_first_not_of("0123456789") == std::string::npos;
  if (!number || std::stoi(digits) < 1 || colon == 0 || text.empty()) {
    return Error{
        ErrorCode::usage,
        fmt::format("--topic: '{}' is invalid; expected NAME:PARTITIONS, for example mnist:4", text)};
  }
  return stream::EmbeddedBroker::Topic{text.substr(0, colon), std::stoi(digits)};
}

/// Checks that Kafka allows these topic names, so that a setup also works on a real broker.
Status check_topics(const std::vector<stream::EmbeddedBroker::Topic>& topics) {
  constexpr auto allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  std::set<std::string> seen;
  for (const auto& topic : topics) {
    const std::string& name = topic.name;
    if (name.size() > 249 || name.find_first_not_of(allowed) != std::string::npos ||
        name.find_first_not_of('.') == std::string::npos)
      return Error{
          ErrorCode::usage,
          fmt::format("'{}' is not a valid topic name; expected at most 249 letters, digits, '.', '_' or '-'",
                      name)};
    if (!seen.insert(name).second)
      return Error{ErrorCode::usage, fmt::format("topic '{}' is given twice", name)};
  }
  return ok();
}

/// True once stdin is closed.
bool input_ended() {
  pollfd in{STDIN_FILENO, POLLIN, 0};
  char ignored[256];
  return ::poll(&in, 1, 0) > 0 && ::read(STDIN_FILENO, ignored, sizeof ignored) <= 0;
}

class BrokerCommand final : public Command {
 public:
  explicit BrokerCommand(CLI::App& root)
      : app_(root.add_subcommand("broker", "a small in-memory Kafka broker for experiments")) {
    app_->add_option("--job", job_, "name of the job; its control topic rivulet.NAME.control is also created")
        ->required()
        ->type_name("NAME");
    app_->add_option("--topic", topics_, "topic to create; may be repeated")
        ->required()
        ->type_name("NAME:PARTITIONS")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    app_->add_flag("--until-eof", until_eof_, "also exit when stdin is closed");
    app_->footer(broker_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    std::vector<stream::EmbeddedBroker::Topic> topics = {{fmt::format("rivulet.{}.control", job_), 1}};
    for (const auto& text : topics_) {
      const auto topic = parse_topic(text);
      if (!topic) return report_error(terminal, topic.error());
      topics.push_back(topic.value());
    }
    if (auto fine = check_topics(topics); !fine) return report_error(terminal, fine.error());
    StopRequest stop{0};
    const SignalHandlers handlers(stop);
    const auto broker = stream::EmbeddedBroker::start(topics);
    if (!broker) return report_error(terminal, broker.error());
    announce(terminal, *broker.value(), topics);
    while (stop.load() == 0 && !(until_eof_ && input_ended())) pause_ms(100);
    return ExitCode::ok;
  }

 private:
  static void announce(Terminal& terminal, const stream::EmbeddedBroker& broker,
                       const std::vector<stream::EmbeddedBroker::Topic>& topics) {
    terminal.out << "bootstrap.servers=" << broker.bootstrap_servers() << '\n';
    for (const auto& topic : topics) {
      terminal.out << fmt::format("topic {} with {} partition{}\n", topic.name, topic.partitions,
                                  topic.partitions == 1 ? "" : "s");
    }
    terminal.out
        << "limits: in memory, about 5 MB per partition (older records are dropped silently), loopback only, "
           "PLAINTEXT, no Admin API\nruns until Ctrl-C\n"
        << std::flush;
  }

  CLI::App* app_;
  std::string job_;
  std::vector<std::string> topics_;
  bool until_eof_ = false;
};

}  // namespace

std::unique_ptr<Command> make_broker_command(CLI::App& root) {
  return std::make_unique<BrokerCommand>(root);
}

}  // namespace rivulet::runtime::cli
