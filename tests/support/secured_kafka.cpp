#include "tests/support/secured_kafka.h"

#include <utility>

namespace rivulet::testing {
namespace {

using namespace std::chrono_literals;

/// Creates an authority and its certificate for localhost and 127.0.0.1; server.pem contains key and chain.
Status make_certificates(const TempDir& folder) {
  folder.write("san.cnf", "subjectAltName=DNS:localhost,IP:127.0.0.1\n");
  ProcessOptions options;
  options.directory = folder.path();
  options.merge_errors = true;
  options.command = {
      "bash", "-euc",
      "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=rivulet-test-authority -keyout ca.key "
      "-out ca.pem\n"
      "openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr\n"
      "openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile san.cnf "
      "-out server.crt\n"
      "openssl pkcs8 -topk8 -nocrypt -in server.key -out server.pkcs8\n"
      "cat server.pkcs8 server.crt ca.pem > server.pem\n"};
  const RunOutput made = run(options, 60s);
  if (made.status.code == 0) return ok();
  return Error{ErrorCode::unavailable, "openssl made no certificate: " + made.output};
}

}  // namespace

Result<std::unique_ptr<SecuredKafka>> SecuredKafka::start(const std::string& user,
                                                          const std::string& password) {
  std::unique_ptr<SecuredKafka> kafka(new SecuredKafka);
  kafka->user_ = user;
  if (auto made = make_certificates(kafka->folder_); !made) return made.error();
  const std::string secured = "127.0.0.1:" + std::to_string(free_port());
  const std::string plain = "127.0.0.1:" + std::to_string(free_port());
  const std::string controller = "127.0.0.1:" + std::to_string(free_port());
  KafkaServerOptions options;
  options.brokers = plain;
  options.properties = {
      {"controller.quorum.voters", "1@" + controller},
      {"listeners", "PLAINTEXT://" + plain + ",SASL_SSL://" + secured + ",CONTROLLER://" + controller},
      {"advertised.listeners", "PLAINTEXT://" + plain + ",SASL_SSL://" + secured},
      {"listener.security.protocol.map", "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL"},
      {"sasl.enabled.mechanisms", "PLAIN"},
      {"listener.name.sasl_ssl.plain.sasl.jaas.config",
       "org.apache.kafka.common.security.plain.PlainLoginModule required user_" + user + "=\"" + password +
           "\";"},
      {"ssl.keystore.type", "PEM"},
      {"ssl.keystore.location", (kafka->folder_.path() / "server.pem").string()},
      {"authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"},
      {"super.users", "User:ANONYMOUS"}};
  auto server = KafkaServer::start(options);
  if (!server) return server.error();
  kafka->server_ = std::move(server).value();
  kafka->brokers_ = secured;
  return kafka;
}

Status SecuredKafka::allow(const std::vector<std::string>& arguments) {
  std::vector<std::string> all{"--add", "--allow-principal", "User:" + user_};
  all.insert(all.end(), arguments.begin(), arguments.end());
  const RunOutput said = server_->tool("kafka.admin.AclCommand", all);
  return said.status.code == 0 ? ok() : Status(Error{ErrorCode::io, said.output + said.errors});
}

}  // namespace rivulet::testing
