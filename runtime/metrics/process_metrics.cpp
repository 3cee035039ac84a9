#include "runtime/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/clock.h"

namespace rivulet::runtime {
namespace {

/// Field `number` of /proc/self/stat, counted from 1 as proc(5) does; the name in brackets may contain
/// blanks.
double stat_field(int number) {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t bracket = line.rfind(')');
  if (bracket == std::string::npos) return -1;
  std::istringstream rest(line.substr(bracket + 1));
  std::string field;
  for (int i = 3; i <= number; ++i) rest >> field;
  return rest ? std::stod(field) : -1;
}

double boot_time_s() {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("btime ")) return std::stod(line.substr(6));
  }
  return -1;
}

double start_time_s() {
  const double boot = boot_time_s();
  const double ticks = stat_field(22);
  if (boot < 0 || ticks < 0) return -1;
  return boot + ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double open_files() {
  std::error_code error;
  double count = 0;
  for (std::filesystem::directory_iterator it("/proc/self/fd", error), end; !error && it != end;
       it.increment(error)) {
    ++count;
  }
  return error ? -1 : count - 1;  // less the one that listed them
}

double limit_of_files() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : -1;
}

double pages_to_bytes(double pages) {
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

double process_age_seconds() {
  const double ticks = stat_field(22);
  double uptime = 0;
  std::ifstream("/proc/uptime") >> uptime;
  return ticks < 0 ? 0 : uptime - ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::vector<ProcessMetric> read_process_metrics() {
  std::vector<ProcessMetric> all{
      {"process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", true,
       process_cpu_seconds()},
      {"process_open_fds", "Number of open file descriptors.", false, open_files()},
      {"process_max_fds", "Maximum number of open file descriptors.", false, limit_of_files()},
      {"process_virtual_memory_bytes", "Virtual memory size in bytes.", false, stat_field(23)},
      {"process_resident_memory_bytes", "Resident memory size in bytes.", false,
       pages_to_bytes(stat_field(24))},
      {"process_start_time_seconds", "Start time of the process since unix epoch in seconds.", false,
       start_time_s()},
      {"process_threads", "Number of OS threads in the process.", false, stat_field(20)},
  };
  std::erase_if(all, [](const ProcessMetric& m) { return m.value < 0; });
  return all;
}

}  // namespace rivulet::runtime
