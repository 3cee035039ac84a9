#include "runtime/http/http_server.h"

#include <arpa/inet.h>
#include <civetweb.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <future>
#include <mutex>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/http/address.h"
#include "runtime/http/civetweb_library.h"

namespace rivulet::runtime {
namespace {

constexpr const char* text_type = "text/plain; charset=utf-8";
constexpr const char* metrics_type = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* json_type = "application/json";
constexpr const char* index_text =
    "rivulet\n\n"
    "/metrics        measurements, for Prometheus\n"
    "/livez          are the threads alive\n"
    "/readyz         is the group formed\n"
    "/api/v1/status  everything this device knows about itself, as JSON\n";

struct Answer {
  int status = 200;
  const char* type = text_type;
  std::string body;
};

const char* reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    default: return "Service Unavailable";
  }
}

Answer probe(const std::function<bool(std::string&)>& ask) {
  std::string why;
  if (ask(why)) return {200, text_type, "ok\n"};
  return {503, text_type, why + "\n"};
}

/// A connection to the own port that says nothing.
void knock(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  // Under way or refused: the server is awake either way.
  static_cast<void>(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof to));
  close(fd);
}

class Server final : public HttpServer {
 public:
  explicit Server(Pages pages) : pages_(std::move(pages)) {}
  ~Server() override {
    if (context_ != nullptr) stop();
  }
  Status open(const std::string& listen, const Address& address);
  [[nodiscard]] int port() const noexcept override { return port_; }
  [[nodiscard]] Answer answer(std::string_view method, std::string_view path) const;
  void note(const char* message);

 private:
  std::string take_notes();
  void stop();
  // constant after open()
  Pages pages_;
  mg_context* context_ = nullptr;
  int port_ = 0;
  // shared, under mutex_: what civetweb complained about while it started
  std::mutex mutex_;
  std::string notes_;
};

Answer Server::answer(std::string_view method, std::string_view path) const {
  if (method != "GET") return {405, text_type, "this server is read-only: GET\n"};
  if (path == "/metrics") return {200, metrics_type, pages_.metrics()};
  if (path == "/livez") return probe(pages_.live);
  if (path == "/readyz") return probe(pages_.ready);
  if (path == "/api/v1/status") return {200, json_type, pages_.status_json() + "\n"};
  if (path == "/") return {200, text_type, index_text};
  return {404, text_type, "no such page; / lists them\n"};
}

void Server::note(const char* message) {
  const std::lock_guard lock(mutex_);
  if (notes_.size() < 1000) notes_ += fmt::format("{}{}", notes_.empty() ? "" : "; ", message);
}

std::string Server::take_notes() {
  const std::lock_guard lock(mutex_);
  return std::exchange(notes_, {});
}

// civetweb's listener looks up every two seconds, or when somebody knocks: so we knock until it is gone.
void Server::stop() {
  const auto stopped = std::async(std::launch::async, mg_stop, context_);
  while (stopped.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) knock(port_);
}

// Every request ends here, so civetweb's own file serving is never reached.
int on_request(mg_connection* connection) {
  const mg_request_info* request = mg_get_request_info(connection);
  const auto* server = static_cast<const Server*>(request->user_data);
  const char* path = request->local_uri != nullptr ? request->local_uri : "";
  const Answer answer = server->answer(request->request_method, path);
  const std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Cache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
      answer.status, reason_of(answer.status), answer.type, answer.body.size(),
      answer.status == 405 ? "Allow: GET\r\n" : "");
  mg_write(connection, head.data(), head.size());
  mg_write(connection, answer.body.data(), answer.body.size());
  return answer.status;
}

int on_log(const mg_connection* connection, const char* message) {
  const mg_context* context = mg_get_context(connection);
  if (context != nullptr) static_cast<Server*>(mg_get_user_data(context))->note(message);
  return 1;  // nothing goes to stderr behind the logger's back
}

Error cannot_listen(const std::string& listen, const std::string& notes) {
  if (notes.find(std::generic_category().message(EADDRINUSE)) != std::string::npos) {
    return {ErrorCode::unavailable, listen + " is in use (http.listen)"};
  }
  return {ErrorCode::unavailable, fmt::format("cannot listen on {} (http.listen): {}", listen, notes)};
}

Status Server::open(const std::string& listen, const Address& address) {
  use_civetweb();
  mg_callbacks callbacks{};
  callbacks.begin_request = on_request;
  callbacks.log_message = on_log;
  const std::string ports = fmt::format("{}:{}", address.host, address.port);
  const char* options[] = {"listening_ports",
                           ports.c_str(),
                           "num_threads",
                           "2",
                           "connection_queue",
                           "16",
                           "listen_backlog",
                           "32",
                           "request_timeout_ms",
                           "2000",
                           "max_request_size",
                           "8192",
                           "enable_keep_alive",
                           "no",
                           "enable_directory_listing",
                           "no",
                           nullptr};
  context_ = mg_start(&callbacks, this, options);
  const std::string notes = take_notes();
  if (context_ == nullptr) return cannot_listen(listen, notes);
  mg_server_port bound{};
  if (mg_get_server_ports(context_, 1, &bound) != 1) return cannot_listen(listen, notes);
  port_ = bound.port;
  return ok();
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const std::string& listen, Pages pages) {
  const Result<Address> address = parse_loopback(listen);
  if (!address) return address.error();
  auto server = std::make_unique<Server>(std::move(pages));
  if (Status opened = server->open(listen, address.value()); !opened) return opened.error();
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace rivulet::runtime
