#pragma once
#include <memory>
#include <string>
#include <vector>

#include "tests/support/kafka_server.h"
#include "tests/support/temp_dir.h"

namespace rivulet::testing {

/// A real Kafka for an untrusted network: SASL_SSL in addition to the plaintext listener of the tests' own
/// clients (full access), a certificate from its own authority, access control lists.
class SecuredKafka {
 public:
  /// Errors: unavailable (no openssl, no Kafka).
  static Result<std::unique_ptr<SecuredKafka>> start(const std::string& user, const std::string& password);

  KafkaServer& server() { return *server_; }
  [[nodiscard]] const std::string& brokers() const noexcept {
    return brokers_;
  }  ///< HOST:PORT of the SASL_SSL listener
  [[nodiscard]] std::string authority() const { return (folder_.path() / "ca.pem").string(); }
  /// Adds an access rule: kafka-acls.sh --add with the arguments after --allow-principal.
  Status allow(const std::vector<std::string>& arguments);

 private:
  SecuredKafka() = default;
  TempDir folder_;
  std::string user_;
  std::string brokers_;
  std::unique_ptr<KafkaServer> server_;
};

}  // namespace rivulet::testing
