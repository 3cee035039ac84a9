#include "runtime/status/http/answer.h"

#include <fmt/format.h>
#include <sys/random.h>

#include <array>
#include <cstdint>

#include "core/check.h"

namespace rivulet::runtime {
namespace {

constexpr const char* text_type = "text/plain; charset=utf-8";
constexpr const char* metrics_type = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* json_type = "application/json";
constexpr const char* html_type = "text/html; charset=utf-8";

const char* reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 401: return "Unauthorized";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 408: return "Request Timeout";
    case 411: return "Length Required";
    case 413: return "Content Too Large";
    case 505: return "HTTP Version Not Supported";
    default: return status < 500 ? "Bad Request" : "Service Unavailable";
  }
}

/// `told`: may the reader see why?
PageAnswer probe(const std::function<bool(std::string&)>& ask, bool told) {
  std::string why;
  if (ask(why)) return {200, text_type, "ok\n"};
  return {503, text_type, told ? why + "\n" : "no\n"};
}

PageAnswer unauthorised() {
  return {401, text_type, "these pages need the token of http.token_file\n",
          "WWW-Authenticate: Basic realm=\"rivulet\", charset=\"UTF-8\"\r\n"};
}

/// 128 bits that nobody can guess, as hexadecimal digits.
std::string fresh_nonce() {
  std::array<std::uint64_t, 2> bits{};
  const auto got = getrandom(bits.data(), sizeof bits, 0);  // so few bytes always come whole
  RIVULET_CHECK(got == static_cast<ssize_t>(sizeof bits), "the kernel's random numbers");
  return fmt::format("{:016x}{:016x}", bits[0], bits[1]);
}

/// Nothing but the page's own script and style runs, and it talks to this server alone.
PageAnswer html_page(const std::function<std::string(const std::string&)>& page) {
  const std::string nonce = fresh_nonce();
  return {200, html_type, page(nonce),
          fmt::format("Content-Security-Policy: default-src 'none'; script-src 'nonce-{0}'; style-src "
                      "'nonce-{0}'; connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
                      "frame-ancestors 'none'\r\nReferrer-Policy: no-referrer\r\n",
                      nonce)};
}

}  // namespace

PageAnswer answer_to(const HttpRequest& request, const HttpServer::Pages& pages, const Access& access) {
  const auto& [method, path, authorization] = request;
  if (method != "GET") return {405, text_type, "this server is read-only: GET\n", "Allow: GET\r\n"};
  const bool allowed = access.allows(authorization);
  if (path == "/livez") return probe(pages.live, allowed);
  if (path == "/readyz") return probe(pages.ready, allowed);
  if (!allowed) return unauthorised();
  if (path == "/") return html_page(pages.page);
  if (path == "/metrics") return {200, metrics_type, pages.metrics()};
  if (path == "/api/v1/status") return {200, json_type, pages.status_json() + "\n"};
  if (path == "/api/v1/group") return {200, json_type, pages.group_json() + "\n"};
  return {404, text_type,
          "no such page; there are: / /metrics /livez /readyz /api/v1/status /api/v1/group\n"};
}

PageAnswer answer_to_unreadable(int status) {
  return {status, text_type, "the request could not be read, or came too slowly\n"};
}

std::string head_of(const PageAnswer& answer) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Cache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n",
      answer.status, reason_of(answer.status), answer.type, answer.body.size(), answer.headers);
}

}  // namespace rivulet::runtime
