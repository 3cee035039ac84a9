#pragma once
#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace rivulet::testing {

/// A server that is not Rivulet. Sends a fixed answer to each client in turn. Later clients get the beginning
/// of an answer, then a byte from time to time, until they close or this object ends.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::vector<std::string> answers)
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)), answers_(std::move(answers)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    REQUIRE(bind(fd_, reinterpret_cast<sockaddr*>(&at), size) == 0);
    REQUIRE(getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size) == 0);
    REQUIRE(listen(fd_, 8) == 0);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~ScriptedServer() {
    done_ = true;
    thread_.join();
    close(fd_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  [[nodiscard]] std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  /// True while a client gets an answer byte by byte.
  [[nodiscard]] bool trickles() const { return trickles_; }

 private:
  static constexpr int step_ms = 50;

  void serve() {
    for (std::size_t served = 0; !done_;) {
      pollfd one{.fd = fd_, .events = POLLIN, .revents = 0};
      if (poll(&one, 1, step_ms) != 1) continue;
      const int client = accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
      char request[4096];
      recv(client, request, sizeof request, 0);
      if (served < answers_.size())
        send(client, answers_[served].data(), answers_[served].size(), MSG_NOSIGNAL);
      else
        trickle(client);
      ++served;
      close(client);
    }
  }
  void trickle(int client) {
    std::string part = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n";
    while (!done_ && send(client, part.data(), part.size(), MSG_NOSIGNAL) > 0) {
      trickles_ = true;
      part = "x";
      std::this_thread::sleep_for(std::chrono::milliseconds(step_ms));
    }
    trickles_ = false;
  }

  int fd_;
  int port_ = 0;
  std::vector<std::string> answers_;
  std::atomic<bool> done_{false};
  std::atomic<bool> trickles_{false};
  std::thread thread_;
};

}  // namespace rivulet::testing
