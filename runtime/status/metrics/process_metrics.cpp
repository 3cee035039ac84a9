#include "runtime/status/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <utility>

#include "core/clock.h"

namespace rivulet::runtime {
namespace {

/// Returns field `number` of /proc/self/stat, counted from 1 as in proc(5). The name in brackets may contain
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

/// Returns the number of entries of a directory of /proc/self; -1 if unreadable.
double entries_of(const char* folder) {
  std::error_code error;
  double count = 0;
  for (std::filesystem::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    ++count;
  }
  return error ? -1 : count;
}

double open_files() {
  const double all = entries_of("/proc/self/fd");
  return all < 0 ? -1 : all - 1;  // minus the descriptor of this listing
}

double limit_of_files() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<double>(limit.rlim_cur) : -1;
}

/// Returns mapped and resident bytes from /proc/self/statm; -1 if unreadable. /proc/self/stat has zeros under
/// CPU emulation.
std::pair<double, double> memory_bytes() {
  double all = -1;
  double resident = -1;
  if (!(std::ifstream("/proc/self/statm") >> all >> resident)) return {-1, -1};
  const auto page = static_cast<double>(sysconf(_SC_PAGESIZE));
  return {all * page, resident * page};
}

}  // namespace

double process_age_seconds() {
  const double ticks = stat_field(22);
  double uptime = 0;
  std::ifstream("/proc/uptime") >> uptime;
  return ticks < 0 ? 0 : uptime - ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

std::vector<ProcessMetric> read_process_metrics() {
  const auto [mapped_bytes, resident_bytes] = memory_bytes();
  std::vector<ProcessMetric> all{
      {"process_cpu_seconds_total", "Total user and system CPU time spent in seconds.", true,
       process_cpu_seconds()},
      {"process_open_fds", "Number of open file descriptors.", false, open_files()},
      {"process_max_fds", "Maximum number of open file descriptors.", false, limit_of_files()},
      {"process_virtual_memory_bytes", "Virtual memory size in bytes.", false, mapped_bytes},
      {"process_resident_memory_bytes", "Resident memory size in bytes.", false, resident_bytes},
      {"process_start_time_seconds", "Start time of the process since unix epoch in seconds.", false,
       start_time_s()},
      {"process_threads", "Number of OS threads in the process.", false, entries_of("/proc/self/task")},
  };
  std::erase_if(all, [](const ProcessMetric& m) { return m.value < 0; });
  return all;
}

}  // namespace rivulet::runtime
