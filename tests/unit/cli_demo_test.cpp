#include <doctest/doctest.h>

#include <signal.h>

#include <algorithm>
#include <cmath>

#include "runtime/cli/demo/demo_fate.h"
#include "runtime/cli/demo/demo_plan.h"
#include "runtime/cli/ledger.h"
#include "runtime/cli/text.h"
#include "runtime/config/config.h"
#include "tests/support/places.h"
#include "tests/support/temp_dir.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::runtime::cli;

namespace {

const std::string images = rivulet::testing::source_path("examples/mnist/data");

DemoOptions options_in(const testing::TempDir& folder) {
  DemoOptions options;
  options.keep = (folder.path() / "demo").string();
  options.data = images;
  return options;
}

}  // namespace

TEST_CASE("Demo: four uneven streams unless told otherwise, and the slowest one changes half-way") {
  const testing::TempDir folder;
  auto plan = plan_demo(options_in(folder));
  REQUIRE(plan);
  CHECK(plan.value().rates == std::vector<double>{800, 400, 200, 100});
  CHECK(plan.value().second_rates == std::vector<double>{800, 400, 200, 400});
  CHECK(plan.value().change_at == 20);
  CHECK(plan.value().embedded);
}

TEST_CASE("Demo: devices and rates fit each other or are refused") {
  const testing::TempDir folder;
  auto options = options_in(folder);
  const auto rates_with = [&](int devices, const std::string& rates) {
    options.devices = devices;
    options.rates = rates;
    options.keep = (folder.path() / (std::to_string(devices) + rates)).string();
    auto plan = plan_demo(options);
    return plan ? plan.value().rates : std::vector<double>{};
  };
  CHECK(rates_with(2, "") == std::vector<double>{800, 400});
  CHECK(rates_with(6, "") == std::vector<double>{800, 400, 200, 100, 800, 400});
  CHECK(rates_with(3, "50") == std::vector<double>{50, 50, 50});
  CHECK(rates_with(0, "5,6") == std::vector<double>{5, 6});
  CHECK(rates_with(3, "5,6").empty());
  CHECK(rates_with(65, "").empty());
}

TEST_CASE("Demo: times and rates that cannot be played are refused before anything starts") {
  const testing::TempDir folder;
  const auto refused = [&](double seconds, const std::string& rates) {
    auto options = options_in(folder);
    options.seconds = seconds;
    options.rates = rates;
    options.keep = (folder.path() / ("keep" + std::to_string(seconds) + rates)).string();
    const auto plan = plan_demo(options);
    return !plan && plan.error().code == ErrorCode::usage;
  };
  CHECK_FALSE(refused(2, "10,0"));
  CHECK(refused(0.5, ""));
  CHECK(refused(std::nan(""), ""));
  CHECK(refused(1e300, ""));
  CHECK(refused(2, "0,0"));
  CHECK(refused(2, "1e308"));
}

TEST_CASE("Demo: the file it writes is a valid configuration with the numbers it said") {
  const testing::TempDir folder;
  auto options = options_in(folder);
  options.model = "linear";
  options.seed = 7;
  auto made = plan_demo(options);
  REQUIRE(made);
  auto& plan = made.value();
  plan.brokers = "127.0.0.1:1234";
  const auto file = folder.write("job.toml", job_file_text(plan)).string();
  ConfigInput input;
  input.file = file;
  const auto loaded = load_config(input);
  for (const auto& problem : loaded.problems) MESSAGE(problem.text());
  CHECK(loaded.problems.empty());
  CHECK(loaded.config.job.name == "demo");
  CHECK(loaded.config.job.devices == 4);
  CHECK(loaded.config.job.seed == 7);
  CHECK(loaded.config.model.name == "linear");
  CHECK(loaded.config.source.topics == std::vector<std::string>{"mnist"});
  CHECK(loaded.config.sync.on_peer_loss == "reform");  // users may kill devices
  CHECK(loaded.config.decode.shape == std::vector<std::int64_t>{1, 28, 28});
}

TEST_CASE("Demo: each device has its own name, partition, folder and port; one measures accuracy") {
  const testing::TempDir folder;
  auto made = plan_demo(options_in(folder));
  REQUIRE(made);
  const auto& plan = made.value();
  int measuring = 0;
  std::vector<std::string> seen;
  for (std::size_t i = 0; i < plan.devices(); ++i) {
    const auto arguments = device_arguments(plan, i, plan.seconds);
    for (const char* flag : {"--id", "--data-dir", "--partitions", "--http"}) {
      const auto at = std::find(arguments.begin(), arguments.end(), flag);
      REQUIRE(at != arguments.end());
      seen.push_back(flag + *(at + 1));
    }
    measuring += static_cast<int>(std::count_if(arguments.begin(), arguments.end(), [](const std::string& a) {
      return a.starts_with("evaluate.held_out.path=");
    }));
  }
  CHECK(measuring == 1);
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  // Pacing by commits is for the embedded broker, which drops old records.
  const auto feeder = feeder_arguments(plan);
  CHECK(std::find(feeder.begin(), feeder.end(), "--pace") != feeder.end());
}

TEST_CASE("Demo: a device that is started again trains for what is left of the time") {
  const testing::TempDir folder;
  auto made = plan_demo(options_in(folder));
  REQUIRE(made);
  auto first = device_arguments(made.value(), 1, 40);
  auto again = device_arguments(made.value(), 1, 12.5);
  std::replace(again.begin(), again.end(), std::string("seconds=12.5"), std::string("seconds=40"));
  CHECK(first == again);  // everything else is equal
}

TEST_CASE("Demo: whose plug was pulled is started again, who failed by itself is not") {
  const auto killed_by = [](int signal, int restarts = 0) {
    return fate_of({.signal = signal, .restarts = restarts});
  };
  CHECK(killed_by(SIGKILL) == Fate::start_again);
  CHECK(killed_by(SIGTERM) == Fate::start_again);
  CHECK(killed_by(SIGHUP) == Fate::start_again);
  for (const int bug : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) CHECK(killed_by(bug) == Fate::fatal);
  CHECK(killed_by(SIGKILL, restarts_most - 1) == Fate::start_again);
  CHECK(killed_by(SIGKILL, restarts_most) == Fate::fatal);
  CHECK(fate_of({.code = 0}) == Fate::done);
  CHECK(fate_of({.code = 0, .missed = true}) == Fate::start_again);  // only this device was asked to end
  CHECK(fate_of({.code = 0, .missed = true, .restarts = restarts_most}) == Fate::fatal);
  for (const int code : {1, 69, 70, 75, 76, 78, 137}) {
    CHECK(fate_of({.code = code}) == Fate::fatal);
    CHECK(fate_of({.code = code, .missed = true}) == Fate::fatal);
  }
}

TEST_CASE("Demo: how a device ended is said in one line") {
  CHECK(words_of_end("c", 123, {.signal = SIGKILL}) == "c (pid 123) was killed; restarting it");
  CHECK(words_of_end("c", 123, {.signal = SIGHUP}) == "c (pid 123) was killed by signal 1; restarting it");
  CHECK(words_of_end("c", 123, {.missed = true}) == "c (pid 123) has exited; restarting it");
}

TEST_CASE("Demo: the books of all partitions are one sentence, or name the partition that is wrong") {
  std::vector<PartitionLedger> books(2);
  books[0] = {.topic = "mnist", .id = {0, 0}, .entries = {}, .ends = {{100, 1300}}};
  books[0].entries.next = {1200, 0};
  books[0].entries.trained = 1190;
  books[0].entries.dropped[0] = 10;
  books[1] = {.topic = "mnist", .id = {0, 1}, .entries = {}, .ends = {{0, 7}}};
  books[1].entries.next = {7, 0};
  books[1].entries.trained = 7;
  CHECK(verdict_on(books).balanced);
  CHECK(verdict_on(books).text ==
        "every row is accounted for: 1 197 trained, 10 dropped, 100 still in the broker");
  books[1].ends->low = 9;  // the broker has dropped unread records
  CHECK_FALSE(verdict_on(books).balanced);
  CHECK(verdict_on(books).text == "mnist:1: offsets 7 to 9 were deleted from the log unread");
  books[0].entries.trained = 1189;
  CHECK(verdict_on(books).text.starts_with("mnist:0: row counts do not match the offsets; mnist:1: "));
}

TEST_CASE("Demo: on an existing Kafka job and topic are of this process alone") {
  const testing::TempDir folder;
  auto options = options_in(folder);
  options.brokers = "kafka:9092";
  const auto plan = plan_demo(options);
  REQUIRE(plan);
  CHECK_FALSE(plan.value().embedded);
  CHECK(plan.value().topic.starts_with("rivulet-demo-"));
  CHECK(plan.value().job == plan.value().topic);
  const auto feeder = feeder_arguments(plan.value());
  CHECK(std::find(feeder.begin(), feeder.end(), "--pace") == feeder.end());
}

TEST_CASE("Demo: missing images are an error that says how to give them") {
  const testing::TempDir folder;
  const auto nowhere = find_demo_data(folder.path().string());
  REQUIRE_FALSE(nowhere);
  CHECK(nowhere.error().message.find(folder.path().string()) != std::string::npos);
  CHECK(find_demo_data(images).value() == images);
  // Searches upwards from build/<preset>/<program>.
  CHECK(find_demo_data("").value() == images);
}
