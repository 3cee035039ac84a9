// Arbitrary bytes sent by non-members to a device's pages, over a socket: each client gets the correct
// answer, and so does the next one.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/clock.h"
#include "runtime/status/http/http_server.h"
#include "tests/support/raw_http.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

constexpr const char* bearer = "Authorization: Bearer a-token-of-these-tests\r\n";

/// A server with a token and confidential pages.
class Guarded {
 public:
  Guarded() {
    const auto file = folder_.write("token", "a-token-of-these-tests\n").string();
    const auto said = [] { return std::string("private"); };
    HttpServer::Pages pages{said,
                            [](std::string&) { return true; },
                            [](std::string& why) {
                              why = "private";
                              return false;
                            },
                            said,
                            said,
                            [](const std::string&) { return std::string("private"); }};
    server_ = std::move(HttpServer::start("127.0.0.1:0", pages, Access::from_file(file).value())).value();
  }
  [[nodiscard]] int port() const { return server_->port(); }
  /// True if it still answers; waits long enough for a loaded machine.
  [[nodiscard]] bool answers() const {
    for (int i = 0; i < 5; ++i)
      if (raw(port(), "GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").ends_with("\r\n\r\nok\n")) return true;
    return false;
  }

 private:
  TempDir folder_;
  std::unique_ptr<HttpServer> server_;
};

struct Hostile {
  std::string name;
  std::string sent;
  int status;
};

/// Connected clients with partial requests, for the object's lifetime.
class Strangers {
 public:
  Strangers(int port, int count, const std::string& said) {
    for (int i = 0; i < count; ++i) {
      connections_.push_back(connect_to(port));
      REQUIRE(connections_.back() >= 0);
      send(connections_.back(), said.data(), said.size(), MSG_NOSIGNAL);
    }
  }
  ~Strangers() {
    for (const int fd : connections_) close(fd);
  }
  /// Bytes that each receives until its connection ends.
  [[nodiscard]] std::vector<std::size_t> take_all() const {
    std::vector<std::size_t> taken;
    for (const int fd : connections_) taken.push_back(receive_all(fd).size());
    return taken;
  }
  Strangers(const Strangers&) = delete;
  Strangers& operator=(const Strangers&) = delete;

 private:
  std::vector<int> connections_;
};

std::string get(const std::string& path, const std::string& headers = bearer) {
  return "GET " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n";
}

std::string method(const std::string& name) {
  return name + " /metrics HTTP/1.1\r\nHost: x\r\n" + bearer + "\r\n";
}

std::string many_headers(int count, const std::string& last = "") {
  std::string out;
  for (int i = 0; i < count; ++i) out += "X-" + std::to_string(i) + ": y\r\n";
  return out + last;
}

constexpr std::array never_said = {"Evil", "Cookie", "\x1b", "9.9", "private", "bbb", "aaa"};

/// One answer that consists only of our lines.
void check_form(const std::string& answer, int status) {
  CHECK(answer.substr(0, 13) == "HTTP/1.1 " + std::to_string(status) + " ");
  const auto end = answer.find("\r\n\r\n");
  REQUIRE(end != std::string::npos);
  const std::string head = answer.substr(0, end + 2);
  CHECK(head.size() < 1024);
  for (const char* line :
       {"\r\nContent-Type: ", "\r\nX-Content-Type-Options: nosniff\r\n", "\r\nConnection: close\r\n"})
    CHECK(contains(head, line));
  for (const char* never : never_said) CHECK_FALSE(contains(answer, never));
  CHECK(answer.find("HTTP/1.1 ", 1) == std::string::npos);
}

/// libmicrohttpd's own answer to an unreadable head: a few constant lines, then the connection ends.
void check_refusal(const std::string& answer, int status) {
  CHECK(answer.substr(0, 13) == "HTTP/1.1 " + std::to_string(status) + " ");
  CHECK(contains(answer, "\r\nConnection: close\r\n"));
  CHECK(answer.size() < 512);
  for (const char* never : never_said) CHECK_FALSE(contains(answer, never));
}

std::vector<Hostile> paths() {
  return {
      {"a NUL in the path", get("/metrics%00.html"), 404},
      {"nothing but a NUL", get("/%00"), 404},
      {"up and down", get("/livez/../metrics"), 404},
      {"out of the pages", get("/../../etc/passwd"), 404},
      {"the same, encoded", get("/%2e%2e/%2e%2e/etc/passwd"), 404},
      {"two slashes", get("//metrics"), 404},
      {"a letter, encoded", get("/%6detrics"), 404},
      {"a probe's name in front, for who has no token", get("/livez/../metrics", ""), 401},
      {"the same, with a NUL", get("/livez%00/metrics", ""), 401},
      {"a wrong code", get("/%zz"), 404},
      {"lines in the path", get("/x%0d%0aSet-Cookie:%20Evil"), 404},
      {"lines in the query", get("/livez?%0d%0aX-Evil:%201"), 200},
      {"another machine's page", get("http://evil.example/metrics"), 404},
      {"the server as a whole", "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 405},
  };
}

std::vector<Hostile> headers() {
  return {
      {"no Host", "GET /livez HTTP/1.1\r\n\r\n", 200},
      {"9 kB in a header", get("/livez", "X: " + std::string(9'000, 'b') + "\r\n"), 400},
      {"7 kB in a header", get("/livez", "X: " + std::string(7'000, 'b') + "\r\n"), 200},
      {"a token behind more headers than are read", get("/metrics", many_headers(70, bearer)), 401},
      {"a wrong token before the right one",
       get("/metrics", std::string("Authorization: Bearer no\r\n") + bearer), 401},
      {"a token that is too long",
       get("/metrics", "Authorization: Bearer " + std::string(4000, 'a') + "\r\n"), 401},
      {"a token in the query", get("/metrics?token=a-token-of-these-tests", ""), 401},
      {"another protocol", get("/livez", "Connection: Upgrade\r\nUpgrade: websocket\r\n"), 200},
      {"a NUL in a header", get("/livez", std::string("X: a\0b\r\n", 8)), 200},
      {"a NUL in a header, for who has no token", get("/metrics", std::string("X: a\0b\r\n", 8)), 401},
      {"no text at all", std::string(64, '\0') + "\r\n\r\n", 400},
  };
}

/// Requests that the library answers before calling us.
std::vector<Hostile> unreadable() {
  return {
      {"no path", "GET  HTTP/1.1\r\nHost: x\r\n\r\n", 400},
      {"100 kB of path", get("/" + std::string(100'000, 'a')), 414},
      {"100 kB in a header", get("/livez", "X: " + std::string(100'000, 'b') + "\r\n"), 431},
      {"1000 headers", get("/livez", many_headers(1000)), 431},
      {"a header without a name", get("/livez", "Evil\r\n"), 400},
      {"less than nothing behind it", get("/livez", "Content-Length: -1\r\n"), 400},
      {"HTTP/0.9", "GET /livez\r\n\r\n", 400},
      {"a version of its own", "GET /livez HTTP/9.9\r\nHost: x\r\n\r\n", 505},
      {"an escape in the version", "GET /livez HTTP/1.1\x1b[2J\r\nHost: x\r\n\r\n", 400},
  };
}

void check_all(const std::vector<Hostile>& table, void (*check)(const std::string&, int) = check_form) {
  const Guarded server;
  for (const auto& [name, sent, status] : table) {
    CAPTURE(name);
    check(raw(server.port(), sent), status);
    CHECK(server.answers());
  }
}

}  // namespace

TEST_CASE("Requests: hostile paths are no pages") {
  check_all(paths());
}

TEST_CASE("Requests: hostile headers open nothing and are not repeated") {
  check_all(headers());
}

TEST_CASE("Requests: what cannot be read is refused and not repeated") {
  check_all(unreadable(), check_refusal);
}

TEST_CASE("Requests: nothing but GET, from any client") {
  const Guarded server;
  for (const char* name : {"POST", "PUT", "DELETE", "OPTIONS", "HEAD", "CONNECT", "PATCH", "PROPFIND",
                           "TRACE", "get", "BREW", "G\x1b"}) {
    CAPTURE(name);
    const std::string answer = raw(server.port(), method(name));
    check_form(answer, 405);
    CHECK(contains(answer, "Allow: GET\r\n"));
    CHECK(answer.ends_with("\r\n\r\n") == (name == std::string("HEAD")));  // which never has a body
  }
  CHECK(server.answers());
}

TEST_CASE("Requests: of two on one connection the first is answered, and the connection closed") {
  const Guarded server;
  const std::string answer = raw(server.port(), get("/livez") + get("/metrics"));
  check_form(answer, 200);
  CHECK(answer.ends_with("\r\n\r\nok\n"));
  CHECK(server.answers());
}

TEST_CASE("Requests: one that comes a byte at a time has two seconds") {
  const Guarded server;
  const RealClock clock;
  const TimePoint begin = clock.now();
  const int fd = connect_to(server.port());
  REQUIRE(fd >= 0);
  const timeval step{0, 100'000};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &step, sizeof step);
  std::string answer;
  const std::string endless = "GET /livez HTTP/1.1\r\nX: " + std::string(400, 'a');
  for (std::size_t i = 0; i < endless.size() && answer.empty(); ++i) {
    send(fd, &endless[i], 1, MSG_NOSIGNAL);
    answer = receive_all(fd);  // which is the pause between two bytes
  }
  close(fd);
  check_form(answer, 400);
  CHECK(to_seconds(clock.now() - begin) < testing::deadline_slack * 10);
  CHECK(server.answers());
}

TEST_CASE("Requests: probes are answered at once while others are connected and go no further") {
  HttpServer::Pages pages;
  pages.live = pages.ready = [](std::string&) { return true; };
  pages.metrics = [] { return std::string(4 << 20, 'm'); };
  const RealClock clock;
  // None of them delays a probe: it is answered within the two seconds that they have.
  for (const char* said : {"", "GET /livez HTTP/1.1\r\nX: ", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
                           "GET /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n",
                           "POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nx"})
    for (const int count : {4, 16, 200}) {
      CAPTURE(said);
      CAPTURE(count);
      const auto server = HttpServer::start("127.0.0.1:0", pages);
      REQUIRE(server);
      const Strangers strangers(server.value()->port(), count, said);
      for (const char* probe : {"/livez", "/readyz"}) {
        const TimePoint begin = clock.now();
        CHECK(raw(server.value()->port(), get(probe)).ends_with("\r\n\r\nok\n"));
        CHECK(to_seconds(clock.now() - begin) < testing::deadline_slack * 1.5);
      }
    }
}

TEST_CASE("Requests: of 40 answers that nobody takes the oldest are given up") {
  HttpServer::Pages pages;
  pages.live = [](std::string&) { return true; };
  pages.metrics = [] { return std::string(4 << 20, 'm'); };  // more than a socket buffer
  const auto server = HttpServer::start("127.0.0.1:0", pages);
  REQUIRE(server);
  const Strangers strangers(server.value()->port(), 40, get("/metrics"));
  CHECK(raw(server.value()->port(), get("/livez")).ends_with("\r\n\r\nok\n"));  // all earlier ones were read
  const auto taken = strangers.take_all();
  CHECK(taken.front() < 4 << 20);
  CHECK(taken.back() > 4 << 20);
  CHECK(std::ranges::count_if(taken, [](std::size_t bytes) { return bytes > 4 << 20; }) <= 32);
}

TEST_CASE("Requests: an id of any bytes stays inside the page's body") {
  HttpServer::Pages pages;
  const std::string id = "a\r\nX-Evil: 1\r\n\r\n<script>";
  pages.status_json = [&] { return id; };
  const auto server = HttpServer::start("127.0.0.1:0", pages);
  REQUIRE(server);
  const std::string answer = raw(server.value()->port(), get("/api/v1/status"));
  CHECK(answer.ends_with("\r\n\r\n" + id + "\n"));
  CHECK(contains(answer, "\r\nContent-Length: " + std::to_string(id.size() + 1) + "\r\n"));
}
