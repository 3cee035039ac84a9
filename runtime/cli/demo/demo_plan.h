#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/config/config.h"

namespace rivulet::runtime::cli {

/// What the user asked for.
struct DemoOptions {
  int devices = 0;         ///< 0 = as many as rates
  std::string rates = "";  ///< empty = 800,400,200,100 over and over
  double seconds = 40;
  std::string model = Config::Model().name;
  std::uint64_t seed = 42;
  std::string keep;     ///< folder to leave everything in; empty = a temporary one
  std::string data;     ///< empty = found beside the binary
  std::string brokers;  ///< empty = the embedded broker
};

/// Everything that is decided before anything is started.
struct DemoPlan {
  std::string job = "demo";
  std::string topic = "mnist";
  std::filesystem::path directory;
  bool keep = false;
  std::string data;
  std::string brokers;  ///< filled in once the embedded one is up
  bool embedded = true;
  std::vector<double> rates;         ///< [devices] rows/s
  std::vector<double> second_rates;  ///< [devices] from change_at on
  double seconds = 40;
  double change_at = 20;
  std::string model;
  std::uint64_t seed = 42;
  std::vector<int> http_ports;  ///< [devices]
  [[nodiscard]] std::size_t devices() const noexcept { return rates.size(); }
};

/// Errors: usage; io (data not found, folder cannot be made).
Result<DemoPlan> plan_demo(const DemoOptions& options);
/// This program's file, so that it can be typed where it is not in PATH; empty if the system does not say.
std::filesystem::path own_program();
/// Where MNIST's four files are: `given`, or RIVULET_DATA, or examples/mnist/data upwards from the binary.
Result<std::string> find_demo_data(const std::string& given);
/// Rates after half-time: the slowest stream becomes four times as fast.
std::vector<double> changed_rates(std::vector<double> rates);

std::string device_name(std::size_t index);
std::filesystem::path device_directory(const DemoPlan& plan, std::size_t index);
std::filesystem::path job_file(const DemoPlan& plan);
/// The configuration that all devices share.
std::string job_file_text(const DemoPlan& plan);

// Arguments of the processes.
std::vector<std::string> broker_arguments(const DemoPlan& plan);
/// `seconds`: how long it is to train. One that is started again gets what is left: the group's time counts
/// from the start of each process.
std::vector<std::string> device_arguments(const DemoPlan& plan, std::size_t index, double seconds);
std::vector<std::string> feeder_arguments(const DemoPlan& plan);

/// Ports of 127.0.0.1 nobody listens on now, all different, and below those that the kernel gives to anybody
/// who asks for any: one of these may be taken before a device listens on it. Errors: unavailable.
Result<std::vector<int>> free_ports(std::size_t count);

}  // namespace rivulet::runtime::cli
