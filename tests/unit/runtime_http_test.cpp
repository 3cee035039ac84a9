#include <doctest/doctest.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "runtime/status/http/http_server.h"
#include "runtime/status/metrics/prometheus_sink.h"
#include "runtime/status/status_json.h"
#include "tests/support/raw_http.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

// Twice what GPU libraries keep per thread: it is taken from every stack of this program.
thread_local std::array<char, 512 * 1024> kept_for_each_thread;

HttpServer::Pages simple_pages() {
  return {[] { return std::string("rivulet_ready 1\n"); },
          [](std::string&) { return true; },
          [](std::string&) { return true; },
          [] { return std::string("{}"); },
          [] { return std::string("{}"); },
          [](const std::string& nonce) { return "<html>" + nonce + "</html>"; }};
}

std::unique_ptr<HttpServer> start(HttpServer::Pages pages = simple_pages()) {
  auto server = HttpServer::start("127.0.0.1:0", std::move(pages));
  REQUIRE(server);
  return std::move(server).value();
}

std::string request(const std::string& method, const std::string& path) {
  return method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
}

/// http_get() has a timeout of two seconds, which a loaded machine may exceed.
Result<std::string> patient_get(int port, const std::string& path) {
  auto answer = http_get("127.0.0.1", port, path);
  for (int i = 0; i < 10 && !answer && answer.error().message.find(" answers ") == std::string::npos; ++i) {
    answer = http_get("127.0.0.1", port, path);
  }
  return answer;
}

}  // namespace

TEST_CASE("Http: every page is there, and who asks for another is told which there are") {
  const auto sink = make_prometheus_sink();
  sink->gauge("ready").set(1);
  NodeStatus status;
  status.steps = 41;
  auto pages = simple_pages();
  pages.metrics = [&] { return sink->scrape(); };
  pages.status_json = [&] { return status_json(status, {"device-1", "demo", "lenet5"}); };
  const auto server = start(std::move(pages));
  CHECK(server->port() > 0);

  const auto metrics = patient_get(server->port(), "/metrics");
  REQUIRE(metrics);
  CHECK(contains(metrics.value(), "\nrivulet_ready 1\n"));
  CHECK(contains(metrics.value(), "process_cpu_seconds_total"));
  const auto page = patient_get(server->port(), "/api/v1/status");
  REQUIRE(page);
  CHECK(nlohmann::json::parse(page.value())["steps"] == 41);
  CHECK(patient_get(server->port(), "/api/v1/group"));
  const std::string lost = raw(server->port(), request("GET", "/metric"));
  CHECK(lost.starts_with("HTTP/1.1 404 Not Found\r\n"));
  for (const char* name : {" / ", "/metrics", "/livez", "/readyz", "/api/v1/status", "/api/v1/group"})
    CHECK(contains(lost, name));
  CHECK(contains(raw(server->port(), request("GET", "/metrics")), "Content-Type: text/plain; version=0.0.4"));
  CHECK(
      contains(raw(server->port(), request("GET", "/api/v1/status")), "Content-Type: application/json\r\n"));
}

TEST_CASE("Http: it starts where libraries keep much for each thread") {
  auto pages = simple_pages();
  pages.metrics = [] {
    kept_for_each_thread.fill('x');
    return std::string(kept_for_each_thread.data(), 10);
  };
  const auto server = start(std::move(pages));
  CHECK(contains(raw(server->port(), request("GET", "/metrics")), "xxxxxxxxxx"));
}

TEST_CASE("Http: probes answer 200 or 503 with the reason") {
  std::atomic<bool> good{false};
  auto pages = simple_pages();
  pages.live = [&](std::string& why) {
    why = "thread 'train' has not stepped for 12 s";
    return good.load();
  };
  pages.ready = [&](std::string& why) {
    why = "waiting for device-3";
    return good.load();
  };
  const auto server = start(std::move(pages));
  const std::string sick = raw(server->port(), request("GET", "/readyz"));
  CHECK(sick.starts_with("HTTP/1.1 503 Service Unavailable\r\n"));
  CHECK(contains(sick, "\r\n\r\nwaiting for device-3\n"));
  const auto dead = patient_get(server->port(), "/livez");
  REQUIRE(!dead);
  CHECK(dead.error().code == ErrorCode::unavailable);
  CHECK(contains(dead.error().message, "503"));
  CHECK(contains(dead.error().message, "thread 'train' has not stepped for 12 s"));
  good = true;
  CHECK(raw(server->port(), request("GET", "/readyz")).starts_with("HTTP/1.1 200 OK\r\n"));
  CHECK(patient_get(server->port(), "/livez").value() == "ok\n");
}

TEST_CASE("Http: anything but GET is refused") {
  const auto server = start();
  for (const char* method : {"POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"}) {
    CAPTURE(method);
    const std::string answer = raw(server->port(), request(method, "/metrics"));
    CHECK(answer.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
    CHECK(contains(answer, "Allow: GET\r\n"));
  }
}

TEST_CASE("Http: no file, no listing, no way out of the pages") {
  const auto server = start();
  for (const char* path : {"/etc/passwd", "/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/metrics/",
                           "/CMakeLists.txt", "/favicon.ico"}) {
    CAPTURE(path);
    const std::string answer = raw(server->port(), request("GET", path));
    CHECK(!contains(answer, "root:"));
    CHECK(!contains(answer, "<a href"));
    CHECK(!contains(answer, "cmake"));
    CHECK(contains(answer.substr(0, 16), " 4"));
  }
  for (const char* path : {"/.", "//", "/livez/..", "/%6detrics"})  // a page has one name
    CHECK(raw(server->port(), request("GET", path)).starts_with("HTTP/1.1 404 "));
}

TEST_CASE("Http: requests without end, shape or limit do not take the server down") {
  const auto server = start();
  raw(server->port(), "GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n\r\n");
  raw(server->port(), "GET / HTTP/1.1\r\nX: " + std::string(100'000, 'b') + "\r\n\r\n");
  raw(server->port(), std::string(64, '\0') + "\r\n\r\n");
  raw(server->port(), "\r\n\r\n");
  for (const int slashes : {1000, 16000})
    raw(server->port(), request("GET", std::string(static_cast<std::size_t>(slashes), '/')));
  CHECK(patient_get(server->port(), "/livez"));
}

TEST_CASE("Http: clients that send nothing do not lock the others out") {
  const auto server = start();
  std::vector<int> silent;
  for (int i = 0; i < 4; ++i) silent.push_back(connect_to(server->port()));
  CHECK(contains(raw(server->port(), request("GET", "/livez")), "200 OK"));
  for (const int fd : silent) close(fd);
}

TEST_CASE(
    "Http: of 800 clients that say nothing the oldest are closed, and when they leave nothing is left") {
  const auto server = start();
  std::vector<pollfd> silent;
  // The next client is answered after all earlier ones were read. A hundred at a time: a connection that does
  // not fit into the kernel's queue seems established to its client.
  for (int hundred = 0; hundred < 8; ++hundred) {
    for (int i = 0; i < 100; ++i) silent.push_back({start_connecting(server->port()), POLLIN, 0});
    CHECK(contains(raw(server->port(), request("GET", "/livez")), "200 OK"));
  }
  poll(silent.data(), silent.size(), 0);
  const auto kept = std::ranges::count_if(silent, [](const pollfd& p) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    return p.revents == 0 && getpeername(p.fd, reinterpret_cast<sockaddr*>(&peer), &size) == 0;
  });
  CHECK(kept <= 256 + 32);
  for (const auto& p : silent) close(p.fd);
  CHECK(patient_get(server->port(), "/livez"));
}

TEST_CASE("Http: several clients at once get whole answers") {
  auto pages = simple_pages();
  pages.metrics = [] { return std::string(300'000, 'm') + "\n"; };
  const auto server = start(std::move(pages));
  std::atomic<int> good{0};
  std::vector<std::thread> clients;
  for (int t = 0; t < 4; ++t) {
    clients.emplace_back([&] {
      for (int i = 0; i < 10; ++i) {
        const auto answer = patient_get(server->port(), "/metrics");
        if (answer && answer.value().size() == 300'001) ++good;
      }
    });
  }
  for (auto& client : clients) client.join();
  CHECK(good == 40);
}

TEST_CASE("Http: a port that is taken is named, with its key") {
  const auto first = start();
  const std::string address = "127.0.0.1:" + std::to_string(first->port());
  const auto second = HttpServer::start(address, simple_pages());
  REQUIRE(!second);
  CHECK(second.error().code == ErrorCode::unavailable);
  CHECK(second.error().message == address + " is in use (http.listen)");
}

TEST_CASE("Http: the server ends with its object, and the port is free again") {
  auto server = start();
  const int port = server->port();
  REQUIRE(patient_get(port, "/livez"));
  const double cpu = process_cpu_seconds();
  const RealClock clock;
  double shortest = 100;
  for (int i = 0; i < 5; ++i) {
    if (!server)
      server = std::move(HttpServer::start("127.0.0.1:" + std::to_string(port), simple_pages())).value();
    const TimePoint begin = clock.now();
    server.reset();
    shortest = std::min(shortest, to_seconds(clock.now() - begin));
  }
  CHECK(shortest < 1.0);
  CHECK(process_cpu_seconds() - cpu < 1.0);
  const auto gone = http_get("127.0.0.1", port, "/livez");
  REQUIRE(!gone);
  CHECK(gone.error().code == ErrorCode::unavailable);
  CHECK(contains(gone.error().message, "http://127.0.0.1:" + std::to_string(port) + "/livez"));
  CHECK(HttpServer::start("localhost:" + std::to_string(port), simple_pages()));
}

TEST_CASE("Http: only ADDRESS:PORT, and from other machines only with a token") {
  for (const char* bad : {"", "off", "127.0.0.1", "127.0.0.1:", ":9464", "127.0.0.1:x", "127.0.0.1:70000",
                          "127.0.0.1:-1", "127.0.0.1:80x", "example.org:80", "127.0.0.1.example.org:80",
                          "1127.0.0.1:80", "127.0.0.1,0.0.0.0:80", "[::1:80", "::1:80", "[::1]:80"}) {
    CAPTURE(bad);
    const auto server = HttpServer::start(bad, simple_pages());
    REQUIRE(!server);
    CHECK(server.error().code == ErrorCode::invalid_config);
    CHECK(contains(server.error().message, "is not ADDRESS:PORT"));
  }
  for (const char* open : {"0.0.0.0:9464", "192.168.1.4:9464"}) {
    CAPTURE(open);
    const auto server = HttpServer::start(open, simple_pages());
    REQUIRE(!server);
    CHECK(server.error().code == ErrorCode::invalid_config);
    CHECK(contains(server.error().message, "http.token_file must name a file"));
  }
}

TEST_CASE("Http: a browser's page runs nothing that is not its own") {
  const auto server = start();
  const std::string one = raw(server->port(), request("GET", "/"));
  const std::string two = raw(server->port(), request("GET", "/"));
  CHECK(contains(one, "Content-Type: text/html; charset=utf-8\r\n"));
  CHECK(contains(one, "Content-Security-Policy: default-src 'none'; script-src 'nonce-"));
  CHECK(contains(one, "frame-ancestors 'none'"));
  CHECK_FALSE(contains(one, "unsafe"));
  const auto nonce_of = [](const std::string& answer) {
    const auto from = answer.find("<html>") + 6;
    return answer.substr(from, answer.find("</html>") - from);
  };
  CHECK(nonce_of(one).size() == 32);
  CHECK(contains(one, "script-src 'nonce-" + nonce_of(one) + "';"));
  CHECK(nonce_of(one) != nonce_of(two));
}
