// Access to a device's pages: everyone, or requests with the token.
#include "runtime/status/http/access.h"

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include "runtime/status/http/http_server.h"
#include "tests/support/temp_dir.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

constexpr const char* token = "s3cret-token-of-tests";
constexpr const char* basic_of_token = "Basic YW55OnMzY3JldC10b2tlbi1vZi10ZXN0cw==";  // any:<token>

std::string file_with(const TempDir& folder, const std::string& text) {
  const auto path = (folder.path() / "token").string();
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

Access access_with(const TempDir& folder) {
  auto access = Access::from_file(file_with(folder, std::string(token) + "\n"));
  REQUIRE(access);
  return std::move(access).value();
}

HttpServer::Pages pages() {
  return {[] { return std::string("rivulet_ready 1\n"); },
          [](std::string&) { return true; },
          [](std::string& why) {
            why = "waiting for device-3";
            return false;
          },
          [] { return std::string("{}"); },
          [] { return std::string("{}"); },
          [](const std::string&) { return std::string("<html></html>"); }};
}

}  // namespace

TEST_CASE("Access: without a token everybody reads; with one, who says it in either form") {
  CHECK(Access().allows(""));
  CHECK(Access().allows("Bearer whatever"));
  CHECK(Access().header().empty());
  const TempDir folder;
  const Access access = access_with(folder);
  CHECK(access.needs_token());
  CHECK(access.allows(access.header()));
  CHECK(access.allows(std::string("bearer ") + token));
  CHECK(access.allows(basic_of_token));
}

TEST_CASE("Access: nothing but the whole token will do") {
  const TempDir folder;
  const Access access = access_with(folder);
  const std::string right = token;
  for (const std::string& header :
       {std::string(), std::string("Bearer"), std::string("Bearer "), "Bearer " + right + "x",
        "Bearer " + right.substr(1), "Bearer " + right.substr(0, right.size() - 1), "Bearer  " + right,
        "Token " + right, right, "Bearer " + std::string(300, 'a'), "Bearer " + std::string(100'000, 'a'),
        "Bearer " + right + std::string(1, '\0'), std::string("Basic "), std::string("Basic ===="),
        std::string("Basic czNjcmV0LXRva2VuLW9mLXRlc3Rz"),  // the token alone, without a user
        std::string("Basic \xff\xfe")}) {
    CAPTURE(header.substr(0, 60));
    CHECK_FALSE(access.allows(header));
  }
}

TEST_CASE("Access: a header that no client needs is not decoded, whatever stands at its end") {
  const TempDir folder;
  const Access access = access_with(folder);
  const auto behind = [&](std::size_t user) {  // USER:<token>; three characters are four letters of base64
    std::string header = "Basic ";
    for (std::size_t i = 0; i < user / 3; ++i) header += "YWFh";  // aaa
    return header + "OnMzY3JldC10b2tlbi1vZi10ZXN0cw==";           // :<token>
  };
  CHECK(behind(735).size() == 1018);
  CHECK(access.allows(behind(735)));
  CHECK(behind(738).size() == 1022);
  CHECK(access.allows(behind(738)));
  CHECK(behind(741).size() == 1026);
  CHECK_FALSE(access.allows(behind(741)));
  CHECK_FALSE(access.allows(behind(30'000)));
}

TEST_CASE("Access: a file that holds no token is refused with its name, and what is in it is not said") {
  const TempDir folder;
  const auto missing = Access::from_file((folder.path() / "nothing").string());
  REQUIRE(!missing);
  CHECK(missing.error().code == ErrorCode::invalid_config);
  CHECK(contains(missing.error().message, "http.token_file"));
  CHECK(contains(missing.error().message, "cannot be read"));
  CHECK_FALSE(Access::from_file(folder.path().string()));
  for (const std::string& text :
       {std::string(), std::string("\n"), std::string("short-secret"), std::string(257, 's'),
        std::string("two lines-of-secret\nand another"), std::string("a blank in the secret"),
        std::string("secret-with-\x01-control"), std::string("secret-not-ascii-\xc3\xa4")}) {
    CAPTURE(text.size());
    const auto access = Access::from_file(file_with(folder, text));
    REQUIRE(!access);
    CHECK(access.error().code == ErrorCode::invalid_config);
    CHECK_FALSE(contains(access.error().message, "secret"));
  }
  CHECK(Access::from_file(file_with(folder, std::string(256, 's') + "\r\n")));
}

TEST_CASE("Access: a server with a token shows its pages to who says it, and everybody only its probes") {
  const TempDir folder;
  const Access access = access_with(folder);
  auto server = HttpServer::start("127.0.0.1:0", pages(), access);
  REQUIRE(server);
  const int port = server.value()->port();
  for (const char* path : {"/", "/metrics", "/api/v1/status", "/api/v1/group", "/nothing"}) {
    CAPTURE(path);
    const auto refused = http_get("127.0.0.1", port, path);
    REQUIRE(!refused);
    CHECK(contains(refused.error().message, " answers 401"));
    CHECK_FALSE(contains(refused.error().message, token));
    const auto wrong = http_get("127.0.0.1", port, path, "Bearer wrong-token-of-tests");
    REQUIRE(!wrong);
    CHECK(contains(wrong.error().message, " answers 401"));
  }
  for (const char* path : {"/", "/metrics", "/api/v1/status", "/api/v1/group"}) {
    CAPTURE(path);
    CHECK(http_get("127.0.0.1", port, path, access.header()));
    CHECK(http_get("127.0.0.1", port, path, basic_of_token));
  }
  CHECK(http_get("127.0.0.1", port, "/livez").value() == "ok\n");
  const auto stranger = http_get("127.0.0.1", port, "/readyz");
  REQUIRE(!stranger);
  CHECK_FALSE(contains(stranger.error().message, "device-3"));
  const auto reader = http_get("127.0.0.1", port, "/readyz", access.header());
  REQUIRE(!reader);
  CHECK(contains(reader.error().message, "waiting for device-3"));
}

TEST_CASE("Access: a client is told the code of an answer, and that there was none") {
  const TempDir folder;
  auto server = HttpServer::start("127.0.0.1:0", pages(), access_with(folder));
  REQUIRE(server);
  const int port = server.value()->port();
  const auto status = [port](const char* path, const std::string& as) {
    const auto answer = http_request("127.0.0.1", port, path, as);
    REQUIRE(answer);
    return answer.value().status;
  };
  const std::string right = std::string("Bearer ") + token;
  CHECK(status("/livez", "") == 200);
  CHECK(status("/readyz", right) == 503);
  CHECK(http_request("127.0.0.1", port, "/readyz", right).value().body == "waiting for device-3\n");
  CHECK(status("/metrics", "") == 401);
  CHECK(status("/nothing", right) == 404);
  server.value().reset();
  CHECK(http_request("127.0.0.1", port, "/livez", "").error().code == ErrorCode::unavailable);
}

TEST_CASE("Access: with a token other machines may reach the pages") {
  const TempDir folder;
  CHECK(HttpServer::start("0.0.0.0:0", pages(), access_with(folder)));
}
