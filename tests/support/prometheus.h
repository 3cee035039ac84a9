#pragma once
#include <doctest/doctest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/status/http/http_server.h"
#include "tests/support/places.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace rivulet::testing {

/// A real Prometheus with our rules, which scrapes and evaluates every 5 s, as in docker/. It ends with this
/// object.
class Prometheus {
 public:
  /// `targets`: HOST:PORT of each device.
  explicit Prometheus(const std::vector<std::string>& targets) : port_(free_port()) {
    const std::string rules = source_path("dashboards/prometheus/");
    std::string text =
        "global: {scrape_interval: 5s, evaluation_interval: 5s}\nrule_files: [\"" + rules +
        "recording.yaml\", \"" + rules +
        "alerts.yaml\"]\nscrape_configs:\n  - job_name: rivulet\n    static_configs: [{targets: [";
    for (const std::string& target : targets) text += '"' + target + "\", ";
    const auto config = folder_.write("prometheus.yaml", text + "]}]\n");
    ProcessOptions options;
    options.command = {"prometheus", "--config.file=" + config.string(),
                       "--storage.tsdb.path=" + (folder_.path() / "series").string(),
                       "--web.listen-address=127.0.0.1:" + std::to_string(port_)};
    auto started = Process::start(options);
    REQUIRE_MESSAGE(started, "scripts/setup --for tests brings Prometheus");
    process_ = std::move(started).value();
  }

  /// True while the alert fires for this target.
  [[nodiscard]] bool fires(const std::string& alert, const std::string& target) const {
    const auto page = runtime::http_get("127.0.0.1", port_, "/api/v1/alerts");
    const auto said = page ? nlohmann::json::parse(page.value(), nullptr, false) : nlohmann::json();
    if (!said.is_object() || !said.contains("data")) return false;
    for (const auto& one : said["data"]["alerts"])
      if (one["labels"].value("alertname", "") == alert && one["labels"].value("instance", "") == target &&
          one.value("state", "") == "firing")
        return true;
    return false;
  }
  [[nodiscard]] std::string errors() const { return process_->errors(); }

 private:
  TempDir folder_;
  int port_;
  std::unique_ptr<Process> process_;
};

}  // namespace rivulet::testing
