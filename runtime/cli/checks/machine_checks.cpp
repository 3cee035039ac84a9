#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "devices/device.h"
#include "devices/trainer.h"
#include "rivulet_version.h"
#include "runtime/cli/checks/checks.h"
#include "runtime/cli/checks/loaded_objects.h"
#include "runtime/cli/text.h"
#include "runtime/status/http/http_server.h"
#include "stream/open.h"

namespace rivulet::runtime::cli {
namespace {

/// Returns the text after the colon in the first line of /proc/<file> that starts with `key`.
std::string proc_field(const char* file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const auto colon = line.find(':');
    if (line.starts_with(key) && colon != std::string::npos) {
      const auto begin = line.find_first_not_of(" \t", colon + 1);
      return begin == std::string::npos ? "" : line.substr(begin);
    }
  }
  return "";
}

Check cpu_check() {
  static const std::vector<std::string> wanted = {"avx2",     "fma",   "avx512f", "avx512_bf16",
                                                  "amx_tile", "asimd", "sve"};
  std::istringstream words(processor_flags());
  std::vector<std::string> present;
  for (std::string word; words >> word;) {
    if (std::find(wanted.begin(), wanted.end(), word) != wanted.end()) present.push_back(word);
  }
  const auto value =
      fmt::format("{}: {}", proc_field("/proc/cpuinfo", "model name"), fmt::join(present, " "));
  if (!present.empty()) return {"CPU", CheckLevel::ok, value, ""};
  return {"CPU", CheckLevel::warn, value + "no vector instructions found",
          "training will be slow on this machine"};
}

Check threads_check() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = ::sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  const auto value = fmt::format("{} core{} for this process", cores, cores == 1 ? "" : "s");
  if (cores >= 2) return {"cores", CheckLevel::ok, value, ""};
  return {"cores", CheckLevel::warn, value,
          "reading and training share one core; expect about half the rows per second"};
}

/// Returns the memory limit of this process's control group in bytes; 0 if none was found.
double group_limit() {
  for (const char* path : {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream file(path);
    double limit = 0;
    if (file >> limit && limit > 0 && limit < 1e15) return limit;
  }
  return 0;
}

Check memory_check() {
  std::istringstream field(proc_field("/proc/meminfo", "MemAvailable"));
  double available = 0;
  field >> available;
  available *= 1024;
  const double limit = group_limit();
  auto value = human_bytes(available) + " available";
  if (limit > 0) value += fmt::format(", limited to {} by the control group", human_bytes(limit));
  const double usable = limit > 0 ? std::min(available, limit) : available;
  if (usable >= 512e6) return {"memory", CheckLevel::ok, value, ""};
  return {"memory", CheckLevel::warn, value, "a device with LibTorch needs about 300 MB"};
}

Check files_check() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const auto value = fmt::format("{} open files allowed", limit.rlim_cur);
  if (limit.rlim_cur >= 1024) return {"open files", CheckLevel::ok, value, ""};
  return {"open files", CheckLevel::warn, value,
          "raise the limit with ulimit -n 1024; each connection to a peer or broker uses open files"};
}

}  // namespace

std::string processor_flags() {
  const auto flags = proc_field("/proc/cpuinfo", "flags");
  return flags.empty() ? proc_field("/proc/cpuinfo", "Features") : flags;
}

std::vector<Check> autocast_checks(const Config& config, const std::string& processor) {
  if (config.model.autocast != "bfloat16") return {};
  const auto device = devices::make_device(config.device.type);
  if (!device || device.value()->computes_on().gpu >= 0) return {};
  std::istringstream words(processor);
  for (std::string word; words >> word;)
    if (word == "avx512_bf16" || word == "amx_bf16" || word == "bf16")
      return {{"model.autocast", CheckLevel::ok, "bfloat16, supported by this processor's " + word, ""}};
  return {
      {"model.autocast", CheckLevel::warn, "this processor has no instructions for bfloat16",
       "steps take several times as long; set model.autocast = \"off\" if no device has these instructions"}};
}

std::vector<Check> version_checks() {
  std::vector<Check> checks = {
      {"rivulet", CheckLevel::ok, RIVULET_VERSION " (" RIVULET_REVISION ")", ""},
      {"librdkafka", CheckLevel::ok, stream::kafka_client_version(), ""},
      {"libmicrohttpd", CheckLevel::ok, HttpServer::library_version(), ""},
  };
  for (const auto& [name, value] : devices::numeric_library_facts())
    checks.push_back({name, CheckLevel::ok, value, ""});
  return checks;
}

Check gloo_check() {
  // shutdown() of Gloo's TCP device exists only in a complete copy. LibTorch has some GPU parts
  // elsewhere, and this program defines some functions itself (docs/adr/0023, docs/adr/0045).
  const auto copies = loaded_objects_defining("_ZN4gloo9transport3tcp6Device8shutdown");
  if (copies.size() == 1) return {"Gloo copies", CheckLevel::ok, "1: " + copies.front(), ""};
  if (copies.empty()) {
    return {"Gloo copies", CheckLevel::warn, "0: this build cannot connect to other devices",
            "build with LibTorch: cmake --preset release"};
  }
  return {"Gloo copies", CheckLevel::fail, fmt::format("{}: {}", copies.size(), fmt::join(copies, ", ")),
          "more than one copy in a process causes crashes; do not link or preload libgloo"};
}

std::vector<Check> machine_checks() {
  return {cpu_check(), threads_check(), memory_check(), files_check()};
}

}  // namespace rivulet::runtime::cli
