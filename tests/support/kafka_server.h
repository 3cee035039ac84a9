#pragma once
#include <map>
#include <memory>
#include <string>

#include "core/result.h"
#include "tests/support/kafka_client.h"
#include "tests/support/process.h"

namespace rivulet::testing {

struct KafkaServerOptions {
  std::string host = "127.0.0.1";                 ///< listening and advertised address
  bool listens_on_all = false;                    ///< listens on all addresses; advertises `host`
  std::map<std::string, std::string> properties;  ///< override our server.properties
  std::string brokers;  ///< HOST:PORT of the plaintext listener if `properties` moved it
};

/// A real Apache Kafka 3.9 (KRaft, one node, small heap) in its own process and folder, on free ports. Starts
/// in about 4 s on an idle machine and needs 300 MB. Does not create topics automatically. The jars come from
/// `scripts/setup --for tests`; without them start() fails instead of skipping.
class KafkaServer {
 public:
  /// Returns when the broker answers. Errors: unavailable (jars or Java missing, no answer within 60 s).
  static Result<std::unique_ptr<KafkaServer>> start(const KafkaServerOptions& options = {});

  [[nodiscard]] const std::string& brokers() const noexcept { return brokers_; }  ///< HOST:PORT
  [[nodiscard]] std::string log() const;                                          ///< output of the broker
  /// Runs a command-line tool of Kafka, given by Java class; adds --bootstrap-server.
  [[nodiscard]] RunOutput tool(const std::string& main_class,
                               const std::vector<std::string>& arguments) const;

  void kill();       ///< SIGKILL; keeps the data
  Status stop();     ///< SIGTERM, waits for exit
  Status restart();  ///< after kill() or stop(): same port and data; returns when the broker answers
  void suspend();    ///< SIGSTOP: connections stay open without traffic
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

/// Folder of the jars: kafka-3.9.1 in $RIVULET_CACHE, else $XDG_CACHE_HOME/rivulet, else ~/.cache/rivulet.
std::filesystem::path kafka_jars();

}  // namespace rivulet::testing
