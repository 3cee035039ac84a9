#include "devices/sensors.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <map>
#include <string_view>
#include <system_error>

namespace rivulet::devices {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t line_most = 256;
constexpr std::size_t name_most = 64;
constexpr int rail_channels = 6;  // channel 7 is the chip's own sum

/// Returns the first line of a small file; nullopt if it is missing or the kernel rejects the read.
std::optional<std::string> line_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::string line(line_most, '\0');
  if (!in.read(line.data(), static_cast<std::streamsize>(line.size())) && !in.eof()) return std::nullopt;
  if (in.bad()) return std::nullopt;
  line.resize(static_cast<std::size_t>(in.gcount()));
  line.resize(std::min(line.find_first_of(std::string_view("\n\0", 2)), line.size()));
  return line;
}

std::optional<double> number_of(const fs::path& file) {
  const auto line = line_of(file);
  if (!line) return std::nullopt;
  double value = 0;
  const char* end = line->data() + line->size();
  const auto [stop, error] = std::from_chars(line->data(), end, value);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

/// Returns the entries of a folder, sorted by name; none if it is missing.
std::vector<fs::path> entries_of(const fs::path& folder, std::string_view prefix = "") {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error))
    if (it->path().filename().string().starts_with(prefix)) found.push_back(it->path());
  std::ranges::sort(found);
  return found;
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error) && !error;
}

/// Makes a metric label from a text: printable, of limited length.
std::string label_of(std::string text) {
  text.resize(std::min(text.size(), name_most));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c <= ' ' || c > '~' || c == '"' || c == '\\'; }, '_');
  return text;
}

bool is_gpu(const std::string& name) {
  static constexpr std::array<std::string_view, 5> known{"gv11b", "ga10b", "gb10b", "gpu", "gpu-gpc-0"};
  return std::ranges::find(known, name) != known.end();
}

/// Whether the chip measures currents, not only voltages.
bool has_currents(const fs::path& monitor) {
  for (int channel = 1; channel <= rail_channels; ++channel)
    if (is_there(monitor / ("curr" + std::to_string(channel) + "_input"))) return true;
  return false;
}

/// Whether a channel is connected: it has a name other than "NC".
bool is_rail(const std::optional<std::string>& label) {
  return label && !label->empty() && *label != "NC";
}

/// INA3221: in{N}_label, in{N}_input in mV, curr{N}_input in mA.
void read_channels(const fs::path& monitor, SensorReadings& out) {
  for (int channel = 1; channel <= rail_channels && out.power.size() < Sensors::most; ++channel) {
    const auto n = std::to_string(channel);
    const auto label = line_of(monitor / ("in" + n + "_label"));
    if (!is_rail(label)) continue;
    const auto millivolts = number_of(monitor / ("in" + n + "_input"));
    const auto milliamperes = number_of(monitor / ("curr" + n + "_input"));
    if (!millivolts || !milliamperes) {
      ++out.power_errors;
      continue;
    }
    out.power.push_back({label_of(*label), *millivolts * *milliamperes / 1e6, std::nullopt, 0});
    if (*label == "VDD_IN") out.total_rail = *label;
  }
}

}  // namespace

SensorReadings Sensors::read() const {
  SensorReadings out;
  read_heat(out);
  read_rails(out);
  read_packages(out);
  read_gpus(out);
  read_cpu(out);
  read_package_throttles(out);
  read_current_throttles(out);
  read_memory(out);
  return out;
}

std::string Sensors::board() const {
  if (auto model = line_of(root_ / "proc/device-tree/model"); model && !model->empty()) return *model;
  return line_of(root_ / "sys/class/dmi/id/product_name").value_or("");
}

void Sensors::read_heat(SensorReadings& out) const {
  for (const auto& zone : entries_of(root_ / "sys/class/thermal", "thermal_zone")) {
    if (out.heat.size() == most) return;
    const auto type = line_of(zone / "type");
    const auto milli = number_of(zone / "temp");
    if (!type || type->empty() || !milli) {
      ++out.heat_errors;  // a powered-down part rejects reads
      continue;
    }
    std::string name = label_of(*type);
    const auto same = [&name](const ZoneHeat& other) { return other.zone == name; };
    if (std::ranges::any_of(out.heat, same)) name += "-" + zone.filename().string().substr(12);
    out.heat.push_back({std::move(name), *milli / 1000});
  }
}

void Sensors::read_rails(SensorReadings& out) const {
  for (const auto& device : entries_of(root_ / "sys/bus/i2c/devices"))
    for (const auto& monitor : entries_of(device / "hwmon", "hwmon"))
      if (has_currents(monitor)) read_channels(monitor, out);
}

/// RAPL: energy_uj counts up to max_energy_range_uj. Readable only by root.
void Sensors::read_packages(SensorReadings& out) const {
  for (const auto& zone : entries_of(root_ / "sys/class/powercap", "intel-rapl:")) {
    const std::string folder = zone.filename().string();
    if (std::ranges::count(folder, ':') != 1 || out.power.size() == most)
      continue;  // the package includes its parts
    const auto name = line_of(zone / "name");
    const auto energy = number_of(zone / "energy_uj");
    const auto wrap = number_of(zone / "max_energy_range_uj");
    if (!name || name->empty() || !energy || !wrap) {
      ++out.power_errors;
      continue;
    }
    out.power.push_back({label_of(*name), std::nullopt, *energy / 1e6, *wrap / 1e6});
  }
}

/// devfreq: load in thousandths, frequencies in hertz. The node is named after the chip.
void Sensors::read_gpus(SensorReadings& out) const {
  for (const auto& node : entries_of(root_ / "sys/class/devfreq")) {
    const auto name = line_of(node / "device/of_node/name");
    if (!name || !is_gpu(*name) || out.gpus.size() == most) continue;
    GpuLoad gpu{label_of(*name), {}, number_of(node / "cur_freq"), number_of(node / "max_freq")};
    if (is_there(node / "device/load")) {
      const auto thousandths = number_of(node / "device/load");
      if (thousandths && *thousandths >= 0 && *thousandths <= 1000)
        gpu.utilization = *thousandths / 1000;
      else
        ++out.gpu_errors;
    }
    out.gpus.push_back(std::move(gpu));
  }
}

void Sensors::read_cpu(SensorReadings& out) const {
  for (const auto& policy : entries_of(root_ / "sys/devices/system/cpu/cpufreq", "policy"))
    if (const auto kilohertz = number_of(policy / "scaling_cur_freq"))
      out.cpu_hertz = std::max(out.cpu_hertz.value_or(0), *kilohertz * 1000);
}

/// x86: every processor reports the count of its whole package.
void Sensors::read_package_throttles(SensorReadings& out) const {
  std::map<std::string, double> packages;
  for (const auto& cpu : entries_of(root_ / "sys/devices/system/cpu", "cpu")) {
    const auto events = number_of(cpu / "thermal_throttle/package_throttle_count");
    const auto package = line_of(cpu / "topology/physical_package_id");
    if (!events || !package || package->empty()) continue;
    double& most_said = packages[label_of("package-" + *package)];
    most_said = std::max(most_said, *events);
  }
  for (const auto& [package, events] : packages)
    if (out.throttles.size() < most) out.throttles.push_back({package, events});
}

/// Jetson: oc{N}_event_cnt of the over-current monitors, which throttle CPU and GPU.
void Sensors::read_current_throttles(SensorReadings& out) const {
  constexpr std::string_view end = "_event_cnt";
  for (const auto& monitor : entries_of(root_ / "sys/class/hwmon", "hwmon")) {
    if (line_of(monitor / "name") != "soctherm_oc") continue;
    for (const auto& file : entries_of(monitor, "oc")) {
      std::string name = file.filename().string();
      const auto events = name.ends_with(end) ? number_of(file) : std::nullopt;
      if (!events || out.throttles.size() == most) continue;
      name.resize(name.size() - end.size());
      out.throttles.push_back({label_of(name), *events});
    }
  }
}

void Sensors::read_memory(SensorReadings& out) const {
  std::ifstream file(root_ / "proc/meminfo");
  std::optional<double> total;
  std::optional<double> available;
  std::string name;
  for (double kib = 0; file >> name >> kib; file.ignore(line_most, '\n')) {
    if (name == "MemTotal:") total = kib * 1024;
    if (name == "MemAvailable:") available = kib * 1024;
    if (total && available) {
      out.memory = BoardMemory{*total, *available};
      return;
    }
  }
}

}  // namespace rivulet::devices
