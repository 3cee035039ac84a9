#include "runtime/status/http/http_server.h"

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

#include "core/clock.h"
#include "runtime/status/http/address.h"
#include "runtime/status/http/answer.h"
#include "runtime/status/http/civetweb_library.h"
#include "runtime/status/http/front.h"

namespace rivulet::runtime {
namespace {

constexpr auto sending_most = std::chrono::seconds(5);
constexpr std::size_t piece_bytes = 16384;

/// A connection to the own port that sends nothing.
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
  Server(Pages pages, const Access& access) : pages_(std::move(pages)), access_(access) {}
  ~Server() override {
    if (context_ != nullptr) stop();
  }
  Status open(const std::string& listen, const Address& address);
  [[nodiscard]] int port() const noexcept override { return front_->port(); }
  [[nodiscard]] PageAnswer answer(const HttpRequest& request) const {
    return answer_to(request, pages_, access_);
  }
  void note(const char* message);

 private:
  std::string take_notes();
  void stop();
  // constant after open()
  Pages pages_;
  const Access access_;
  mg_context* context_ = nullptr;
  int behind_ = 0;  ///< civetweb's port, on loopback
  std::unique_ptr<Front> front_;
  // shared, under mutex_: what civetweb complained about while it started
  std::mutex mutex_;
  std::string notes_;
};

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
  front_.reset();
  const auto stopped = std::async(std::launch::async, mg_stop, context_);
  while (stopped.wait_for(std::chrono::milliseconds(10)) != std::future_status::ready) knock(behind_);
}

// civetweb gives up on who takes nothing for two seconds, but never on who takes a little: hence in pieces.
void send_text(mg_connection* connection, std::string_view text) {
  const RealClock clock;
  const TimePoint end = clock.now() + sending_most;
  while (!text.empty() && clock.now() < end) {
    const std::string_view piece = text.substr(0, piece_bytes);
    if (mg_write(connection, piece.data(), piece.size()) < static_cast<int>(piece.size())) return;
    text.remove_prefix(piece.size());
  }
}

void send_answer(mg_connection* connection, const PageAnswer& answer, bool with_body) {
  send_text(connection, head_of(answer));
  if (with_body) send_text(connection, answer.body);
}

// Every request ends here, so civetweb's own file serving is never reached.
int on_request(mg_connection* connection) {
  const mg_request_info* request = mg_get_request_info(connection);
  const auto* server = static_cast<const Server*>(request->user_data);
  const char* path = request->local_uri_raw != nullptr ? request->local_uri_raw : "";
  const char* said = mg_get_header(connection, "Authorization");
  const std::string_view method = request->request_method;
  const PageAnswer answer = server->answer({method, path, said != nullptr ? said : ""});
  send_answer(connection, answer, method != "HEAD");
  return answer.status;
}

// civetweb's own words would repeat the version that the request claims.
int on_unreadable(mg_connection* connection, int status, const char* /*why*/) {
  send_answer(connection, answer_to_unreadable(status), true);
  return 0;
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
  auto front = Front::open(address);
  if (!front) return cannot_listen(listen, front.error().message);
  front_ = std::move(front).value();
  use_civetweb();
  mg_callbacks callbacks{};
  callbacks.begin_request = on_request;
  callbacks.http_error = on_unreadable;
  callbacks.log_message = on_log;
  // Behind the front, which hands on so many whole requests at once.
  const std::string threads = std::to_string(Front::handed_on_most);
  const char* options[] = {"listening_ports",
                           "127.0.0.1:0",
                           "num_threads",
                           threads.c_str(),
                           "connection_queue",
                           "64",
                           "listen_backlog",
                           "64",
                           "request_timeout_ms",
                           "2000",
                           "max_request_size",
                           "8192",
                           "decode_url",
                           "no",
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
  behind_ = bound.port;
  front_->serve(behind_, [this](const HttpRequest& request) { return answer(request); });
  return ok();
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const std::string& listen, Pages pages,
                                                      const Access& access) {
  const Result<Address> address = parse_listen(listen);
  if (!address) return address.error();
  if (!address.value().loopback && !access.needs_token())
    return Error{ErrorCode::invalid_config,
                 fmt::format("http.listen = '{}' is reached from other machines: http.token_file must name a "
                             "file with the token that readers need",
                             listen)};
  auto server = std::make_unique<Server>(std::move(pages), access);
  if (Status opened = server->open(listen, address.value()); !opened) return opened.error();
  return std::unique_ptr<HttpServer>(std::move(server));
}

}  // namespace rivulet::runtime
