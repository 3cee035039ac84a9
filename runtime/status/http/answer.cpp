#include "runtime/status/http/answer.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cstdint>
#include <utility>

#include "core/check.h"

namespace rivulet::runtime {
namespace {

constexpr const char* text_type = "text/plain; charset=utf-8";
constexpr const char* metrics_type = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* json_type = "application/json";
constexpr const char* html_type = "text/html; charset=utf-8";

PageAnswer answer(int status, const char* type, std::string body) {
  return {status,
          std::move(body),
          {{"Content-Type", type}, {"Cache-Control", "no-store"}, {"X-Content-Type-Options", "nosniff"}}};
}

/// `told`: whether the answer includes the reason.
PageAnswer probe(const std::function<bool(std::string&)>& ask, bool told) {
  std::string why;
  if (ask(why)) return answer(200, text_type, "ok\n");
  return answer(503, text_type, told ? why + "\n" : "no\n");
}

PageAnswer unauthorised() {
  PageAnswer out = answer(401, text_type, "these pages require the token of http.token_file\n");
  out.headers.emplace_back("WWW-Authenticate", R"(Basic realm="rivulet", charset="UTF-8")");
  return out;
}

/// Returns 128 random bits as hexadecimal digits.
std::string fresh_nonce() {
  std::array<std::uint64_t, 2> bits{};
  const auto got = getrandom(bits.data(), sizeof bits, 0);  // requests up to 256 bytes are never short
  RIVULET_CHECK(got == static_cast<ssize_t>(sizeof bits), "getrandom returned too few bytes");
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

/// The policy allows only the page's own script and style, and connections to this server.
PageAnswer html_page(const std::function<std::string(const std::string&)>& page) {
  const std::string nonce = fresh_nonce();
  PageAnswer out = answer(200, html_type, page(nonce));
  out.headers.emplace_back(
      "Content-Security-Policy",
      fmt::format("default-src 'none'; script-src 'nonce-{0}'; style-src 'nonce-{0}'; connect-src 'self'; "
                  "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                  nonce));
  out.headers.emplace_back("Referrer-Policy", "no-referrer");
  return out;
}

}  // namespace

PageAnswer answer_to(const HttpRequest& request, const HttpServer::Pages& pages, const Access& access) {
  const auto& [method, path, authorization] = request;
  if (method != "GET") {
    PageAnswer refused = answer(405, text_type, "this server is read-only: use GET\n");
    refused.headers.emplace_back("Allow", "GET");
    return refused;
  }
  const bool allowed = access.allows(authorization);
  if (path == "/livez") return probe(pages.live, allowed);
  if (path == "/readyz") return probe(pages.ready, allowed);
  if (!allowed) return unauthorised();
  if (path == "/") return html_page(pages.page);
  if (path == "/metrics") return answer(200, metrics_type, pages.metrics());
  if (path == "/api/v1/status") return answer(200, json_type, pages.status_json() + "\n");
  if (path == "/api/v1/group") return answer(200, json_type, pages.group_json() + "\n");
  return answer(404, text_type,
                "no such page; available: / /metrics /livez /readyz /api/v1/status /api/v1/group\n");
}

PageAnswer answer_to_unreadable() {
  return answer(400, text_type, "the request is malformed, or arrived too slowly\n");
}

}  // namespace rivulet::runtime
