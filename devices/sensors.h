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

/// A supply rail, or a processor package that counts its own energy.
struct RailPower {
  std::string rail;              ///< "VDD_IN", "package-0"
  std::optional<double> watts;   ///< measured now
  std::optional<double> joules;  ///< counted since some time in the past; starts again at `joules_wrap`
  double joules_wrap = 0;
};

struct GpuLoad {
  std::string gpu;                    ///< "ga10b"
  std::optional<double> utilization;  ///< 0 .. 1
  std::optional<double> hertz;
  std::optional<double> hertz_max;
};

/// How often something had to slow down to stay within its limits, since its driver was loaded.
struct ThrottleCount {
  std::string by;  ///< "package-0": heat of a processor package; "oc1": an over-current monitor of a Jetson
  double events = 0;
};

struct BoardMemory {
  double total_bytes = 0;
  double available_bytes = 0;
};

/// What one look found. What a machine does not have, or does not report, is absent: nothing here is 0
/// because it is unknown.
struct SensorReadings {
  std::vector<ZoneHeat> heat;             ///< at most Sensors::most
  std::vector<RailPower> power;           ///< without rails that are the sum of others
  std::optional<std::string> total_rail;  ///< the one of `power` that all others hang on
  std::vector<GpuLoad> gpus;
  std::vector<ThrottleCount> throttles;
  std::optional<double> cpu_hertz;  ///< of the fastest core now
  std::optional<BoardMemory> memory;
  std::uint64_t heat_errors = 0;  ///< there, but not readable at this moment
  std::uint64_t power_errors = 0;
  std::uint64_t gpu_errors = 0;
};

/// Power, heat, load and memory of a machine from the files of its kernel (sysfs, procfs): Jetson boards of
/// JetPack 5 to 7 (INA3221 rails, devfreq, over-current monitors), and any Linux with thermal zones, RAPL,
/// cpufreq. Looks for everything anew with each read(), for parts of a board appear late. One read() opens
/// some dozens of small files, about a millisecond. Owner: the thread that measures.
class Sensors {
 public:
  static constexpr std::size_t most = 64;  ///< of each kind; names are cut at 64 characters

  /// `root`: "/" of the machine, or a tree that looks like it.
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
