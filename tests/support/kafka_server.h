#pragma once
#include <map>
#include <memory>
#include <string>

#include "core/result.h"
#include "tests/support/kafka_client.h"
#include "tests/support/process.h"

namespace rivulet::testing {

struct KafkaServerOptions {
  std::string host = "127.0.0.1";                 ///< address it listens on and advertises
  bool listens_on_all = false;                    ///< addresses of this machine; it advertises `host`
  std::map<std::string, std::string> properties;  ///< on top of our server.properties
  std::string brokers;  ///< HOST:PORT of the plain listener, if `properties` moved it
};

/// A real Apache Kafka 3.9 (KRaft, one node, small heap) in its own process and folder, on free ports. About
/// 4 s to start on a quiet machine, 300 MB; topics are never created by themselves. The jars are those that
/// `scripts/setup --for tests` puts into the cache; without them start() fails, it does not skip.
class KafkaServer {
 public:
  /// Returns when it answers. Errors: unavailable (jars or Java missing, no answer within 60 s).
  static Result<std::unique_ptr<KafkaServer>> start(const KafkaServerOptions& options = {});

  [[nodiscard]] const std::string& brokers() const noexcept { return brokers_; }  ///< HOST:PORT
  [[nodiscard]] std::string log() const;  ///< what the running broker printed
  /// One of Kafka's own command-line tools, by its Java class; it gets --bootstrap-server too.
  [[nodiscard]] RunOutput tool(const std::string& main_class,
                               const std::vector<std::string>& arguments) const;

  void kill();       ///< SIGKILL; data stays
  Status stop();     ///< SIGTERM, waits for the end
  Status restart();  ///< after kill() or stop(): same port, same data; returns when it answers
  void suspend();    ///< SIGSTOP: connections stay open and silent
  void resume();     ///< SIGCONT

 private:
  explicit KafkaServer(const KafkaServerOptions& options);
  Status format();
  [[nodiscard]] ProcessOptions java(const std::string& main_class) const;

  TempDir directory_;
  std::string brokers_;
  std::filesystem::path properties_file_;
  std::unique_ptr<Process> process_;
};

/// Where the jars are: $RIVULET_CACHE, else $XDG_CACHE_HOME/rivulet, else ~/.cache/rivulet; then kafka-3.9.1.
std::filesystem::path kafka_jars();

}  // namespace rivulet::testing
