#include "runtime/status/http/http_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <list>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "runtime/status/http/address.h"
#include "runtime/status/http/answer.h"

namespace rivulet::runtime {
namespace {

constexpr auto clients_max = std::chrono::seconds(2);      ///< time limit for receiving a request's head
constexpr auto answering_most = std::chrono::seconds(10);  ///< time limit for the client to read an answer
constexpr std::size_t clients_kept = 256;                  ///< connections with an incomplete head
constexpr std::size_t answering_kept = 32;                 ///< answers not yet read by the client
constexpr unsigned closing_kept = 32;                      ///< shut down, not yet noticed by the library
constexpr std::size_t head_most = 8192;
constexpr int headers_most = 64;
constexpr std::size_t connection_bytes = 16384;  ///< request head, header table, response head
constexpr std::size_t piece_bytes = 16384;
constexpr int backlog = 256;

struct Visit;
using Visits = std::list<Visit>;

/// One connection, always in exactly one of the server's lists.
struct Visit {
  int fd = -1;
  TimePoint until;
  std::string page;  ///< answer body; cleared when the connection is given up
  Visits* list = nullptr;
  Visits::iterator self;
};

class Server final : public HttpServer {
 public:
  Server(Pages pages, const Access& access)
      : pages_(std::move(pages)), access_(access), wake_(::eventfd(0, EFD_CLOEXEC)) {}
  ~Server() override;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  Status open(const std::string& listen, const Address& address);
  [[nodiscard]] int port() const noexcept override { return port_; }

 private:
  static MHD_Result on_head(void* server, MHD_Connection* connection, const char* path, const char* method,
                            const char* version, const char* body, std::size_t* body_bytes, void** context);
  static void on_connection(void* server, MHD_Connection* connection, void** visit,
                            MHD_ConnectionNotificationCode what);
  void run();
  [[nodiscard]] int patience_ms() const;
  MHD_Result send(MHD_Connection* connection, Visit& visit, PageAnswer answer);
  void move(Visit& visit, Visits& to);
  void give_up(Visit& visit);
  void end_overdue();

  // constant after open()
  const Pages pages_;
  const Access access_;
  const int wake_;
  int port_ = 0;
  MHD_Daemon* daemon_ = nullptr;
  // http thread; each list is ordered by age, so its first entry is due first
  const RealClock clock_;
  Visits clients_;    ///< waiting for the request head
  Visits answering_;  ///< sending an answer
  Visits leaving_;    ///< shut down
  std::thread thread_;
};

Server::~Server() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(wake_, &one, sizeof one));
  if (thread_.joinable()) thread_.join();
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  ::close(wake_);
}

void Server::run() {
  const int events = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
  std::array<pollfd, 2> polled{{{wake_, POLLIN, 0}, {events, POLLIN, 0}}};
  while (polled[0].revents == 0) {
    MHD_run(daemon_);
    end_overdue();
    ::poll(polled.data(), polled.size(), patience_ms());
  }
}

int Server::patience_ms() const {
  MHD_UNSIGNED_LONG_LONG pending = 0;  // bytes read by the library and not yet processed
  if (MHD_get_timeout(daemon_, &pending) == MHD_YES && pending == 0) return 0;
  TimePoint next = clock_.now() + answering_most;
  for (const Visits* visits : {&clients_, &answering_})
    if (!visits->empty()) next = std::min(next, visits->front().until);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - clock_.now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

void Server::move(Visit& visit, Visits& to) {
  to.splice(to.end(), *visit.list, visit.self);
  visit.list = &to;
}

/// The library notices the shutdown when it polls next, and closes the connection.
void Server::give_up(Visit& visit) {
  ::shutdown(visit.fd, SHUT_RDWR);
  std::string().swap(visit.page);
  move(visit, leaving_);
}

// Needed because the library restarts its own timeouts with every byte.
void Server::end_overdue() {
  static const std::string too_slow = [] {
    const PageAnswer answer = answer_to_unreadable();
    std::string text = fmt::format("HTTP/1.1 {} Bad Request\r\nContent-Length: {}\r\nConnection: close\r\n",
                                   answer.status, answer.body.size());
    for (const auto& [name, value] : answer.headers) text += fmt::format("{}: {}\r\n", name, value);
    return text + "\r\n" + answer.body;
  }();
  const TimePoint now = clock_.now();
  while (!clients_.empty() && clients_.front().until <= now) {
    ::send(clients_.front().fd, too_slow.data(), too_slow.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    give_up(clients_.front());
  }
  while (!answering_.empty() && answering_.front().until <= now) give_up(answering_.front());
}

void Server::on_connection(void* server, MHD_Connection* connection, void** visit,
                           MHD_ConnectionNotificationCode what) {
  auto& self = *static_cast<Server*>(server);
  if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
    const auto* const closed = static_cast<Visit*>(*visit);
    closed->list->erase(closed->self);
    return;
  }
  if (self.clients_.size() == clients_kept) self.give_up(self.clients_.front());
  Visit& opened = self.clients_.emplace_back();
  opened.fd = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
  opened.until = self.clock_.now() + clients_max;
  opened.list = &self.clients_;
  opened.self = std::prev(self.clients_.end());
  *visit = &opened;
}

/// Called when a head is complete. Request bodies are ignored.
MHD_Result Server::on_head(void* server, MHD_Connection* connection, const char* path, const char* method,
                           const char* /*version*/, const char* /*body*/, std::size_t* /*body_bytes*/,
                           void** /*context*/) {
  auto& self = *static_cast<Server*>(server);
  auto& visit = *static_cast<Visit*>(
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context);
  if (MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE)->header_size > head_most)
    return self.send(connection, visit, answer_to_unreadable());
  const bool few = MHD_get_connection_values(connection, MHD_HEADER_KIND, nullptr, nullptr) <= headers_most;
  const char* said =
      few ? MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization") : nullptr;
  const HttpRequest request{method, path, said != nullptr ? said : ""};
  return self.send(connection, visit, answer_to(request, self.pages_, self.access_));
}

ssize_t read_page(void* visit, std::uint64_t at, char* to, std::size_t most) {
  const std::string& page = static_cast<const Visit*>(visit)->page;
  if (at >= page.size()) return MHD_CONTENT_READER_END_WITH_ERROR;  // given up
  return static_cast<ssize_t>(page.copy(to, most, at));
}

MHD_Result Server::send(MHD_Connection* connection, Visit& visit, PageAnswer answer) {
  if (visit.list != &clients_) return MHD_NO;  // given up before its head was complete
  if (answering_.size() == answering_kept) give_up(answering_.front());
  move(visit, answering_);
  visit.until = clock_.now() + answering_most;
  visit.page = std::move(answer.body);
  MHD_Response* response =
      MHD_create_response_from_callback(visit.page.size(), piece_bytes, read_page, &visit, nullptr);
  if (response == nullptr) return MHD_NO;
  for (const auto& [name, value] : answer.headers) MHD_add_response_header(response, name, value.c_str());
  MHD_add_response_header(response, "Connection", "close");
  const MHD_Result queued = MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
  MHD_destroy_response(response);
  return queued;
}

/// Leaves the path unescaped.
std::size_t as_sent(void* /*none*/, MHD_Connection* /*connection*/, char* text) {
  return std::string_view(text).size();
}

/// Returns a listening socket, or -1 with errno.
int listening_socket(const Address& address) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  const int on = 1;
  ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(static_cast<std::uint16_t>(address.port));
  inet_pton(AF_INET, address.host.c_str(), &at.sin_addr);
  if (::bind(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0 && ::listen(fd, backlog) == 0)
    return fd;
  const int why = errno;
  ::close(fd);
  errno = why;
  return -1;
}

int port_of(int fd) {
  sockaddr_in at{};
  socklen_t size = sizeof at;
  ::getsockname(fd, reinterpret_cast<sockaddr*>(&at), &size);
  return ntohs(at.sin_port);
}

Error cannot_listen(const std::string& listen, const std::string& why) {
  return {ErrorCode::unavailable, fmt::format("cannot listen on {} (http.listen): {}", listen, why)};
}

Status Server::open(const std::string& listen, const Address& address) {
  const int fd = listening_socket(address);
  if (fd < 0 && errno == EADDRINUSE)
    return Error{ErrorCode::unavailable, listen + " is in use (http.listen)"};
  if (fd < 0) return cannot_listen(listen, std::generic_category().message(errno));
  port_ = port_of(fd);
  daemon_ =
      MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_SUPPRESS_DATE_NO_CLOCK, 0, nullptr, nullptr, on_head, this,
                       MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
                       static_cast<unsigned>(clients_kept + answering_kept) + closing_kept,
                       MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_bytes, MHD_OPTION_NOTIFY_CONNECTION,
                       on_connection, this, MHD_OPTION_UNESCAPE_CALLBACK, as_sent, nullptr, MHD_OPTION_END);
  if (daemon_ == nullptr) {
    ::close(fd);
    return cannot_listen(listen, "the server failed to start");
  }
  thread_ = std::thread([this] { run(); });
  pthread_setname_np(thread_.native_handle(), "http");
  return ok();
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const std::string& listen, Pages pages,
                                                      const Access& access) {
  const Result<Address> address = parse_listen(listen);
  if (!address) return address.error();
  if (!address.value().loopback && !access.needs_token())
    return Error{
        ErrorCode::invalid_config,
        fmt::format("http.listen = '{}' is reachable from other machines: http.token_file must name a "
                    "file with the token that clients need",
                    listen)};
  auto server = std::make_unique<Server>(std::move(pages), access);
  if (Status opened = server->open(listen, address.value()); !opened) return opened.error();
  return std::unique_ptr<HttpServer>(std::move(server));
}

std::string HttpServer::library_version() {
  return MHD_get_version();
}

}  // namespace rivulet::runtime
