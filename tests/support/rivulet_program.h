#pragma once
#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/support/places.h"
#include "tests/support/process.h"

/// The program as started by a user.
namespace rivulet::testing {

using namespace std::chrono_literals;

inline const std::string mnist_images = source_path("examples/mnist/data");

inline ProcessOptions rivulet_with(const std::vector<std::string>& arguments) {
  ProcessOptions options;
  options.command = {rivulet_binary()};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  return options;
}

inline RunOutput rivulet_run(const std::vector<std::string>& arguments, Duration deadline = 60s) {
  return run(rivulet_with(arguments), deadline);
}

inline std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

/// `rivulet broker` and its address.
struct Broker {
  std::unique_ptr<Process> process;
  std::string address;
};

inline Broker start_broker(const std::string& job, const std::string& topic) {
  Broker broker;
  auto started = Process::start(rivulet_with({"broker", "--job", job, "--topic", topic}));
  REQUIRE(started);
  broker.process = std::move(started).value();
  REQUIRE(broker.process->wait_for_output("runs until", 20s));
  const auto line = first_line(broker.process->output());
  REQUIRE(line.starts_with("bootstrap.servers=127.0.0.1:"));
  broker.address = line.substr(line.find('=') + 1);
  return broker;
}

}  // namespace rivulet::testing
