// Request data from non-members on which the pages' server decides: method, path and the header
// Authorization. "METHOD PATH", a newline, the header's value. Read twice: by a server with a token, and by
// one without.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/check.h"
#include "runtime/status/http/answer.h"
#include "sync/membership/base64.h"
#include "tests/fuzz/bytes.h"

namespace rivulet::fuzz {
namespace {

using runtime::Access;
using runtime::HttpRequest;
using runtime::HttpServer;
using runtime::PageAnswer;

constexpr std::string_view token = "a-token-of-this-search";
constexpr std::size_t head_most = 1024;
constexpr std::size_t authorization_most = 1024;
constexpr std::array<std::string_view, 6> paths = {"/",       "/metrics",       "/livez",
                                                   "/readyz", "/api/v1/status", "/api/v1/group"};

HttpServer::Pages pages() {
  const auto said = [] { return std::string("private"); };
  return {said,
          [](std::string&) { return true; },
          [](std::string& why) {
            why = "private";
            return false;
          },
          said,
          said,
          [](const std::string& nonce) { return "private " + nonce; }};
}

/// Read from a file, as in the product, though this one has no name.
Access access_with_token() {
  const int file = memfd_create("token", 0);
  RIVULET_CHECK(write(file, token.data(), token.size()) == static_cast<ssize_t>(token.size()),
                "a token's file");
  auto access = Access::from_file("/proc/self/fd/" + std::to_string(file));
  close(file);
  RIVULET_CHECK(access, "a token");
  return std::move(access).value();
}

/// True if the header contains the token in either form; found without decoding.
bool knows_token(std::string_view header) {
  if (header.size() > authorization_most) return false;
  if (header.find(token) != std::string_view::npos) return true;
  for (std::size_t before = 0; before < 3; ++before) {
    const std::string text = std::string(before, 'x').append(token);
    const std::string base64 = sync::membership::to_base64(std::as_bytes(std::span(text)));
    const std::size_t first = (before * 8 + 5) / 6;  // characters before it do not matter here
    const std::string_view own = std::string_view(base64).substr(first, text.size() * 8 / 6 - first);
    if (header.find(own) != std::string_view::npos) return true;
  }
  return false;
}

/// Each name and value is one line of printable characters, and their total is bounded.
void check_head(const PageAnswer& answer) {
  const auto printable = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
  };
  std::size_t bytes = 0;
  for (const auto& [name, value] : answer.headers) {
    RIVULET_CHECK(printable(name) && std::string_view(name).find_first_of(": ") == std::string_view::npos,
                  "a header has a name");
    RIVULET_CHECK(printable(value), "a head is of printable characters");
    bytes += std::string_view(name).size() + value.size() + 4;
  }
  RIVULET_CHECK(bytes <= head_most, "a head has a bound");
}

/// `open`: no token is needed.
void check_answer(const HttpRequest& request, const PageAnswer& answer, bool open) {
  constexpr std::array statuses = {200, 401, 404, 405, 503};
  RIVULET_CHECK(std::ranges::find(statuses, answer.status) != statuses.end(), "a status we give");
  const bool known_path = std::ranges::find(paths, request.path) != paths.end();
  const bool probe = request.path == "/livez" || request.path == "/readyz";
  if (answer.status == 200)
    RIVULET_CHECK(request.method == "GET" && known_path, "only GET, and only existing pages");
  RIVULET_CHECK((request.method != "GET") == (answer.status == 405), "nothing but GET, and GET always");
  const bool trusted = open || knows_token(request.authorization);
  if (!trusted) RIVULET_CHECK(answer.body.find("private") == std::string::npos, "nothing without the token");
  if (answer.status == 200 && !probe) RIVULET_CHECK(trusted, "no page without the token");
  if (open) RIVULET_CHECK(answer.status != 401, "no token is requested if none is needed");
  check_head(answer);
}

void run(Input input) {
  static const Access closed = access_with_token();
  static const Access open;
  static const HttpServer::Pages all = pages();
  const std::string_view text = text_of(input);
  const auto line_end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, line_end);
  const auto blank = std::min(line.find(' '), line.size());
  const HttpRequest request{line.substr(0, blank), line.substr(std::min(blank + 1, line.size())),
                            text.substr(std::min(line_end + 1, text.size()))};
  check_answer(request, answer_to(request, all, closed), false);
  check_answer(request, answer_to(request, all, open), true);
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  const std::string user = "any:" + std::string(token);
  const std::string basic = "Basic " + sync::membership::to_base64(std::as_bytes(std::span(user)));
  for (const auto path : paths) all.push_back(bytes_of("GET " + std::string(path) + "\n"));
  for (const std::string& header : {"Bearer " + std::string(token), basic, std::string("Basic Og=="),
                                    "bearer " + std::string(token) + "x", std::string("Token x")})
    all.push_back(bytes_of("GET /metrics\n" + header));
  for (const std::string_view other : {"POST /metrics\n", "HEAD /\n", "GET /..//metrics%00\n", "GET\n"})
    all.push_back(bytes_of(other));
  return all;
}

}  // namespace

extern const Target target_http;
const Target target_http{"http", run, seeds};

}  // namespace rivulet::fuzz
