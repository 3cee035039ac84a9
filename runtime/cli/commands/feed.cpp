#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "core/clock.h"
#include "runtime/cli/command.h"
#include "runtime/cli/progress_line.h"
#include "runtime/cli/text.h"
#include "runtime/config/config.h"
#include "runtime/process/signals.h"
#include "runtime/process/stop.h"
#include "stream/feeder.h"

namespace rivulet::runtime::cli {
namespace {

constexpr const char* feed_footer = R"(Examples:
  rivulet feed examples/mnist/data --brokers localhost:9092 --topic mnist --rates 800,400,200,100 --seconds 60
  rivulet feed sensors.jsonl --topic sensors --rates 50 --partitions 2 --repeat
  rivulet feed examples/mnist/data --topic mnist --rates 200 --labels-per-device 2        skewed labels: two digits per partition
  rivulet feed examples/mnist/data --topic mnist --rates 400,100 --second-rates 100,400 --change-at 30s
  rivulet feed data.csv --brokers kafka:9093 --topic t --property security.protocol=ssl --property ssl.ca.location=ca.pem
  rivulet feed examples/mnist/data --brokers 127.0.0.1:PORT --topic mnist --rates 800 --job mnist --pace
                                                   with 'rivulet broker': waits before unread records would be dropped

DATA is a folder with IDX files (MNIST's four, optionally .gz), or one .csv, .json or .jsonl file.)";

struct FeedFlags {
  std::string data;
  std::string brokers = "localhost:9092";
  std::string topic;
  std::string rates = "100";
  std::string second_rates;
  std::string change_at;
  std::string duration;
  std::string split = "train";
  std::string job;
  std::vector<std::string> properties;
  int partitions = 0;
  std::uint64_t seed = 1;
  int labels_per_device = 0;
  bool in_order = false;
  bool repeat = false;
  bool pace = false;
  bool json = false;
};

/// "35" or "35s" or "2m".
Result<Duration> duration_of(const std::string& flag, const std::string& text) {
  const bool plain = text.find_first_not_of("0123456789.") == std::string::npos;
  auto duration = parse_duration(plain ? text + "s" : text);
  if (duration) return duration;
  return Error{ErrorCode::usage,
               fmt::format("{}: '{}' is not a duration; expected for example 35s or 2m", flag, text)};
}

Status set_rates(const FeedFlags& flags, stream::FeederConfig& config) {
  auto rates = parse_rates("--rates", flags.rates);
  if (!rates) return rates.error();
  config.rates = rates.value();
  if (flags.second_rates.empty()) {
    if (flags.change_at.empty()) return ok();
    return Error{ErrorCode::usage, "--change-at needs --second-rates"};
  }
  auto second = parse_rates("--second-rates", flags.second_rates);
  if (!second) return second.error();
  config.second_rates = second.value();
  if (flags.change_at.empty()) return Error{ErrorCode::usage, "--second-rates needs --change-at"};
  return ok();
}

Status set_times(const FeedFlags& flags, stream::FeederConfig& config) {
  if (!flags.change_at.empty()) {
    const auto at = duration_of("--change-at", flags.change_at);
    if (!at) return at.error();
    config.change_at = at.value();
  }
  if (!flags.duration.empty()) {
    const auto duration = duration_of("--seconds", flags.duration);
    if (!duration) return duration.error();
    config.duration = duration.value();
  }
  return ok();
}

Status set_properties(const FeedFlags& flags, stream::FeederConfig& config) {
  config.properties = {{"bootstrap.servers", flags.brokers}};
  for (const auto& property : flags.properties) {
    const auto equals = property.find('=');
    if (equals == std::string::npos || equals == 0) {
      return Error{ErrorCode::usage,
                   fmt::format("--property: '{}' is invalid; expected NAME=VALUE", property)};
    }
    config.properties.emplace_back(property.substr(0, equals), property.substr(equals + 1));
  }
  const auto refused = stream::check_kafka_properties(config.properties);
  if (!refused.empty()) return Error{ErrorCode::invalid_config, refused.front()};
  return ok();
}

Result<stream::FeederConfig> config_of(const FeedFlags& flags) {
  stream::FeederConfig config;
  for (auto* set : {set_rates, set_times, set_properties}) {
    if (auto status = set(flags, config); !status) return status.error();
  }
  if (flags.pace && flags.job.empty()) {
    return Error{ErrorCode::usage,
                 "--pace requires --job NAME: it waits for the committed offsets of that job"};
  }
  config.topic = flags.topic;
  config.partitions = flags.partitions;
  config.seed = flags.seed;
  config.labels_per_device = flags.labels_per_device;
  if (flags.in_order) config.order = stream::Order::kept;
  config.repeat = flags.repeat;
  config.pace_by_commits = flags.pace;
  config.pace_group = "rivulet." + flags.job;
  return config;
}

std::string progress_text(const stream::FeedProgress& p, const Terminal& terminal) {
  const double per_s = p.seconds > 0 ? static_cast<double>(p.records) / p.seconds : 0;
  auto text = fmt::format("{} records  {:.0f}/s  {}  {}", grouped(p.records), per_s,
                          human_bytes(static_cast<double>(p.bytes)), human_seconds(p.seconds));
  if (p.held_back > 0) text += fmt::format("  waited for commits {} times", p.held_back);
  if (p.fraction <= 0) return text;
  if (!terminal.interactive) return fmt::format("{:.0f} %  {}", p.fraction * 100, text);
  return fmt::format("{} {:3.0f} %  {}", progress_bar(p.fraction, 24, terminal.unicode), p.fraction * 100,
                     text);
}

std::string result_json(const stream::FeedProgress& p) {
  return nlohmann::ordered_json{{"records", p.records},
                                {"bytes", p.bytes},
                                {"seconds", p.seconds},
                                {"held_back", p.held_back},
                                {"per_partition", p.per_partition}}
      .dump();
}

class FeedCommand final : public Command {
 public:
  explicit FeedCommand(CLI::App& root)
      : app_(
            root.add_subcommand("feed", "feed a data set into a topic, with a separate rate per partition")) {
    add_target();
    add_timing();
    app_->footer(feed_footer);
  }
  [[nodiscard]] bool chosen() const override { return app_->parsed(); }

  ExitCode execute(Terminal& terminal) override {
    const auto config = config_of(flags_);
    if (!config) return report_error(terminal, config.error());
    const auto split = flags_.split == "test" ? stream::Split::test : stream::Split::train;
    const auto data = stream::open_dataset(flags_.data, split);
    if (!data) return report_error(terminal, data.error());
    StopRequest stop{0};
    const SignalHandlers handlers(stop);
    const auto fed = play(terminal, *data.value(), config.value(), stop);
    if (!fed) return report_error(terminal, fed.error());
    if (fed.value().records == 0 && stop.load() == 0) {
      return report_error(
          terminal, Error{ErrorCode::bad_record,
                          flags_.data + ": no record was fed; the data set is empty, or all rates are 0"});
    }
    if (flags_.json) {
      terminal.out << result_json(fed.value()) << '\n';
    } else {
      terminal.out << "fed " << progress_text(fed.value(), Terminal{terminal.out, terminal.err}) << " into "
                   << flags_.topic << '\n';
    }
    return ExitCode::ok;
  }

 private:
  void add_target() {
    app_->add_option("data", flags_.data, "data set to feed")->required()->type_name("DATA");
    app_->add_option("-b,--brokers", flags_.brokers, "Kafka brokers")
        ->type_name("HOST:PORT,...")
        ->envname("RIVULET_BROKERS")
        ->capture_default_str();
    app_->add_option("-t,--topic", flags_.topic, "target topic (must exist)")->required()->type_name("TOPIC");
    app_->add_option("--partitions", flags_.partitions,
                     "number of partitions to feed, starting at 0; 0 = all")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
    app_->add_option("--property", flags_.properties, "librdkafka property; may be repeated")
        ->type_name("NAME=VALUE")
        ->expected(1)
        ->allow_extra_args(false)
        ->take_all();
    app_->add_option("--split", flags_.split, "data set split to read from an IDX folder")
        ->check(CLI::IsMember({"train", "test"}));
    app_->add_option("--seed", flags_.seed, "seed for shuffling the records")->capture_default_str();
    app_->add_flag("--in-order", flags_.in_order,
                   "feed the records in the order of the data set, without shuffling")
        ->excludes("--seed");
    app_->add_option("--labels-per-device", flags_.labels_per_device,
                     "number of classes per partition; 0 = all")
        ->type_name("N")
        ->check(CLI::NonNegativeNumber);
    app_->add_flag("--json", flags_.json, "print the result as one JSON object, on the last line of stdout");
  }
  void add_timing() {
    app_->add_option("-r,--rates", flags_.rates,
                     "records per second for each partition; a single rate applies to all")
        ->type_name("R[,R...]")
        ->capture_default_str();
    app_->add_option("--second-rates", flags_.second_rates, "records per second after --change-at")
        ->type_name("R[,R...]");
    app_->add_option("--change-at", flags_.change_at, "time when --second-rates take effect")
        ->type_name("SECONDS");
    app_->add_option("--seconds,--duration", flags_.duration, "feeding time (default: until the data ends)")
        ->type_name("SECONDS");
    app_->add_flag("--repeat", flags_.repeat, "start over at the end of the data, reshuffled");
    app_->add_option("--job", flags_.job, "job that consumes the topic, for --pace")->type_name("NAME");
    app_->add_flag("--pace", flags_.pace, "wait for the job's committed offsets (for the embedded broker)");
  }

  Result<stream::FeedProgress> play(Terminal& terminal, const stream::Dataset& data,
                                    const stream::FeederConfig& config, StopRequest& stop) {
    // With --json only the result goes to stdout.
    ProgressLine line(flags_.json ? terminal.err_screen() : terminal.out_screen(),
                      terminal.interactive && !flags_.json);
    const RealClock clock;
    return stream::feed(
        data, config, clock, [&](const stream::FeedProgress& p) { line.show(progress_text(p, terminal)); },
        [&] { return stop.load() != 0; });
  }

  CLI::App* app_;
  FeedFlags flags_;
};

}  // namespace

std::unique_ptr<Command> make_feed_command(CLI::App& root) {
  return std::make_unique<FeedCommand>(root);
}

}  // namespace rivulet::runtime::cli
