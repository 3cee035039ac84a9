#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "runtime/cli/demo/elastic_script.h"
#include "runtime/config/config.h"

namespace rivulet::runtime::cli {

/// The user's options.
struct DemoOptions {
  int devices = 0;         ///< 0 = number of rates
  std::string rates = "";  ///< empty = 800,400,200,100 repeated
  double seconds = 40;
  std::string model = Config::Model().name;
  std::uint64_t seed = 42;
  std::string keep;      ///< folder to keep; empty = a temporary one
  std::string data;      ///< empty = found next to the binary
  std::string brokers;   ///< empty = the embedded broker
  bool elastic = false;  ///< the demo kills, adds and stops devices
};

/// All decisions made before anything starts.
struct DemoPlan {
  std::string job = "demo";
  std::string topic = "mnist";
  std::filesystem::path directory;
  bool keep = false;
  std::string data;
  std::string brokers;  ///< set once the embedded broker runs
  bool embedded = true;
  std::vector<double> rates;         ///< [devices] rows/s
  std::vector<double> second_rates;  ///< [devices] from change_at
  double seconds = 40;
  double change_at = 20;
  std::string model;
  std::uint64_t seed = 42;
  std::optional<ElasticPlan> elastic;  ///< none: the same devices to the end
  std::vector<int> http_ports;         ///< [processes]
  /// Devices at the start; each has a partition.
  [[nodiscard]] std::size_t devices() const noexcept { return rates.size(); }
  /// Devices that are started at any time.
  [[nodiscard]] std::size_t processes() const noexcept { return devices() + (elastic ? 1 : 0); }
  [[nodiscard]] std::size_t partition_of(std::size_t device) const noexcept {
    return elastic && device == elastic->added ? elastic->killed : device;
  }
  /// Whether the demo lets this device train to the end.
  [[nodiscard]] bool stays(std::size_t device) const noexcept {
    return !elastic || (device != elastic->killed && device != elastic->stopped);
  }
};

/// Errors: usage; io (data not found, folder cannot be made).
Result<DemoPlan> plan_demo(const DemoOptions& options);
/// Returns the path of this program, since it may not be in PATH; empty if unknown.
std::filesystem::path own_program();
/// Finds the folder with MNIST's four files: `given`, RIVULET_DATA, or examples/mnist/data above the binary.
Result<std::string> find_demo_data(const std::string& given);
/// Returns the rates for the second half of the demo: the slowest stream becomes four times as fast.
std::vector<double> changed_rates(std::vector<double> rates);

std::string device_name(std::size_t index);
std::filesystem::path device_directory(const DemoPlan& plan, std::size_t index);
std::filesystem::path job_file(const DemoPlan& plan);
/// job.devices as TOML.
std::string job_devices(const DemoPlan& plan);
/// Configuration shared by all devices.
std::string job_file_text(const DemoPlan& plan);

// Arguments of the processes.
std::vector<std::string> broker_arguments(const DemoPlan& plan);
/// `seconds`: training time. A restarted device gets the remaining time, since each process counts from its
/// own start.
std::vector<std::string> device_arguments(const DemoPlan& plan, std::size_t index, double seconds);
std::vector<std::string> feeder_arguments(const DemoPlan& plan);

/// Returns different free ports of 127.0.0.1 below the ephemeral range: the kernel could assign an ephemeral
/// port to another process before the device listens. Errors: unavailable.
Result<std::vector<int>> free_ports(std::size_t count);

}  // namespace rivulet::runtime::cli
