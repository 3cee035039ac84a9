#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace rivulet::devices {

struct ZoneHeat {
  std::string zone;  ///< "cpu-thermal"
  double celsius = 0;
};

/// A supply rail, or a processor package with an energy counter.
struct RailPower {
  std::string rail;              ///< "VDD_IN", "package-0"
  std::optional<double> watts;   ///< current power
  std::optional<double> joules;  ///< counter; restarts at `joules_wrap`
  double joules_wrap = 0;
};

struct GpuLoad {
  std::string gpu;                    ///< "ga10b"
  std::optional<double> utilization;  ///< 0 .. 1
  std::optional<double> hertz;
  std::optional<double> hertz_max;
};

/// Throttling events from one cause since its driver was loaded.
struct ThrottleCount {
  std::string by;  ///< "package-0": heat of a processor package; "oc1": an over-current monitor of a Jetson
  double events = 0;
};

struct BoardMemory {
  double total_bytes = 0;
  double available_bytes = 0;
};

/// Results of one read(). Values that a machine lacks or does not report are absent, never 0.
struct SensorReadings {
  std::vector<ZoneHeat> heat;             ///< at most Sensors::most
  std::vector<RailPower> power;           ///< without rails that sum others
  std::optional<std::string> total_rail;  ///< the rail in `power` that feeds all others
  std::vector<GpuLoad> gpus;
  std::vector<ThrottleCount> throttles;
  std::optional<double> cpu_hertz;  ///< clock rate of the fastest core
  std::optional<BoardMemory> memory;
  std::uint64_t heat_errors = 0;  ///< sensors present, but unreadable
  std::uint64_t power_errors = 0;
  std::uint64_t gpu_errors = 0;
};

/// Power, heat, load and memory of a machine from its kernel's files (sysfs, procfs): Jetson boards with
/// JetPack 5 to 7 (INA3221 rails, devfreq, over-current monitors), and any Linux with thermal zones, RAPL,
/// cpufreq. Each read() searches for sensors again, since parts of a board may appear late. Cost: opens a few
/// dozen small files, about 1 ms. Owner: the measuring thread.
class Sensors {
 public:
  static constexpr std::size_t most = 64;  ///< maximum of each kind; names are cut at 64 characters

  /// `root`: "/", or a directory tree of the same structure.
  explicit Sensors(std::filesystem::path root) : root_(std::move(root)) {}

  [[nodiscard]] SensorReadings read() const;
  /// "NVIDIA Jetson Orin Nano Developer Kit"; empty if the machine does not report it.
  [[nodiscard]] std::string board() const;

 private:
  void read_heat(SensorReadings& out) const;
  void read_rails(SensorReadings& out) const;
  void read_packages(SensorReadings& out) const;
  void read_gpus(SensorReadings& out) const;
  void read_cpu(SensorReadings& out) const;
  void read_package_throttles(SensorReadings& out) const;
  void read_current_throttles(SensorReadings& out) const;
  void read_memory(SensorReadings& out) const;

  const std::filesystem::path root_;
};

}  // namespace rivulet::devices
