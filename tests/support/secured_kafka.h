#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/support/kafka_server.h"
#include "tests/support/temp_dir.h"

namespace rivulet::testing {

/// A real Kafka as users have it who do not trust their network: SASL_SSL beside the plain listener of the
/// tests' own clients (who may do everything), a certificate of an authority of its own, access by lists.
class SecuredKafka {
 public:
  /// Errors: unavailable (no openssl, no Kafka).
  static Result<std::unique_ptr<SecuredKafka>> start(const std::string& user, const std::string& password);

  KafkaServer& server() { return *server_; }
  [[nodiscard]] const std::string& brokers() const noexcept { return brokers_; }  ///< SASL_SSL, HOST:PORT
  [[nodiscard]] std::string authority() const { return (folder_.path() / "ca.pem").string(); }
  /// One of the lists: kafka-acls.sh --add, with what comes behind --allow-principal.
  Status allow(const std::vector<std::string>& arguments);

 private:
  SecuredKafka() = default;
  TempDir folder_;
  std::string user_;
  std::string brokers_;
  std::unique_ptr<KafkaServer> server_;
};

}  // namespace rivulet::testing
