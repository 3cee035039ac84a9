// Clients of the pages cost the round nothing, even if the answering thread is paused during its answer.
#include <doctest/doctest.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "runtime/status/http/http_server.h"
#include "tests/support/held_thread.h"
#include "tests/support/places.h"
#include "tests/support/rivulet_program.h"
#include "tests/support/temp_dir.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

constexpr int holds_most = 150;
constexpr int holds_least = 30;                 // for a slow or loaded machine
constexpr std::uintmax_t some_rounds = 16'384;  // bytes of decisions: about a dozen rounds

/// Reads all pages of a device continuously, on several threads.
class Readers {
 public:
  explicit Readers(int port) {
    for (const char* page : {"/metrics", "/metrics", "/api/v1/status", "/api/v1/group", "/"})
      threads_.emplace_back([this, port, path = std::string(page)] {
        while (!ended_)
          if (runtime::http_get("127.0.0.1", port, path)) ++answers_;
      });
  }
  ~Readers() {
    ended_ = true;
    for (auto& thread : threads_) thread.join();
  }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;
  [[nodiscard]] int answers() const { return answers_; }

 private:
  std::atomic<bool> ended_{false};
  std::atomic<int> answers_{0};
  std::vector<std::thread> threads_;
};

/// An answering thread, paused outside of shared libraries.
std::unique_ptr<HeldThread> held_while_answering(pid_t device, const OwnCode& own) {
  for (const pid_t thread : running_threads(device, "http"))
    if (auto held = HeldThread::hold(thread); held && own.holds(held->at())) return held;
  return nullptr;
}

std::uintmax_t size_of(const std::filesystem::path& file) {
  std::error_code none;
  const auto size = std::filesystem::file_size(file, none);
  return none ? 0 : size;
}

}  // namespace

TEST_CASE("Scrape: no round waits for one, wherever in its answer the thread that serves it stands still") {
  const TempDir folder;
  const int port = free_port();
  const auto device = Process::start(
      rivulet_with({"run", "--config", source_path("examples/mnist/device.toml"), "--set",
                    "source.type=synthetic", "--set", "source.rate=2000", "--set", "model.name=linear",
                    "--set", "batch.policy=fixed", "--set", "batch.rows=16", "--devices", "1", "--http",
                    "127.0.0.1:" + std::to_string(port), "--data-dir", (folder.path() / "data").string()}));
  REQUIRE(device);
  const auto decisions = folder.path() / "data" / "decisions.jsonl";
  REQUIRE(wait_until([&] { return size_of(decisions) > some_rounds; }, 30s));
  const OwnCode own(device.value()->pid(), {rivulet_binary(), "libprometheus-cpp", "libmicrohttpd"});
  REQUIRE_FALSE(own.empty());

  REQUIRE_MESSAGE(HeldThread::hold(device.value()->pid()), "ptrace is refused on this machine");

  const Readers readers(port);
  int holds = 0;
  const auto until = std::chrono::steady_clock::now() + 120s;
  while (holds < holds_most && std::chrono::steady_clock::now() < until) {
    const auto held = held_while_answering(device.value()->pid(), own);
    if (!held) {
      std::this_thread::sleep_for(1ms);
      continue;
    }
    ++holds;
    const auto before = size_of(decisions);
    REQUIRE_MESSAGE(wait_until([&] { return size_of(decisions) >= before + some_rounds; }, 20s),
                    "no round while a reader's thread stood still, hold " << holds);
  }
  CHECK(holds >= holds_least);
  CHECK(readers.answers() > holds_least);
  CHECK(device.value()->running());
}
