#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "runtime/status/http/exchange.h"
#include "runtime/status/http/http_server.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t head_max = 16 << 10;
constexpr std::size_t body_max = 4 << 20;
constexpr Duration exchange_max = std::chrono::seconds(4);

struct Head {
  int status = 0;
  std::size_t bytes = 0;                 ///< with the empty line behind it
  std::optional<std::size_t> announced;  ///< bytes of the body
};

template <class T>
std::optional<T> number_at(std::string_view text) {
  T number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} ? std::optional(number) : std::nullopt;
}

/// nullopt: it is not all there yet, or is none.
std::optional<Head> read_head(std::string_view answer) {
  const auto end = answer.find("\r\n\r\n");
  constexpr std::size_t status_at = 9;  // behind "HTTP/1.1 "
  if (end == std::string_view::npos || end <= status_at || !answer.starts_with("HTTP/1."))
    return std::nullopt;
  const auto status = number_at<int>(answer.substr(status_at, 3));
  if (!status) return std::nullopt;
  constexpr std::string_view name = "\r\ncontent-length: ";
  const auto same = [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a | 0x20 : a) == b; };
  const auto head = answer.substr(0, end);
  const auto found = std::search(head.begin(), head.end(), name.begin(), name.end(), same);
  Head out{.status = *status, .bytes = end + 4, .announced = std::nullopt};
  if (found != head.end())
    out.announced =
        number_at<std::size_t>(head.substr(static_cast<std::size_t>(found - head.begin()) + name.size()));
  return out;
}

/// What is wrong with an answer of which so much is there; empty: nothing.
std::string complaint(std::string_view answer, const std::optional<Head>& head, bool ended) {
  if (!head) {
    if (ended) return answer.empty() ? "closed without an answer" : "the answer is cut off";
    return answer.size() > head_max ? "the answer is not one of HTTP" : "";
  }
  const std::size_t body = answer.size() - head->bytes;
  if (std::max(body, head->announced.value_or(0)) > body_max) return "the answer is longer than 4 MiB";
  return ended && body < head->announced.value_or(0) ? "the answer is cut off" : "";
}

Result<HttpAnswer> read_answer(Exchange& exchange) {
  std::string answer;
  for (bool ended = false;;) {
    const auto more = exchange.receive(answer);
    if (!more) return more.error();
    ended = !more.value();
    const auto head = read_head(answer);
    if (auto why = complaint(answer, head, ended); !why.empty())
      return Error{ErrorCode::unavailable, std::move(why)};
    if (!head) continue;
    const bool whole = head->announced && answer.size() >= head->bytes + *head->announced;
    if (whole || ended)
      return HttpAnswer{head->status,
                        answer.substr(head->bytes, head->announced.value_or(std::string::npos))};
  }
}

std::string url_of(const std::string& host, int port, const std::string& path) {
  return fmt::format("http://{}:{}{}", host, port, path);
}

}  // namespace

Result<HttpAnswer> http_ask(const std::string& host, int port, const std::string& path,
                            const std::string& authorization) {
  const auto failed = [&](const Error& why) {
    return Error{why.code, url_of(host, port, path) + ": " + why.message};
  };
  Exchange exchange(exchange_max);
  if (Status connected = exchange.connect(host, port); !connected) return failed(connected.error());
  const auto said = authorization.empty() ? "" : fmt::format("Authorization: {}\r\n", authorization);
  // 1.0: who answers it sends no body in chunks.
  const auto request =
      fmt::format("GET {} HTTP/1.0\r\nHost: {}\r\n{}Connection: close\r\n\r\n", path, host, said);
  if (Status sent = exchange.send(request); !sent) return failed(sent.error());
  auto answer = read_answer(exchange);
  if (!answer) return failed(answer.error());
  return answer;
}

Result<std::string> http_get(const std::string& host, int port, const std::string& path,
                             const std::string& authorization) {
  auto answer = http_ask(host, port, path, authorization);
  if (!answer) return answer.error();
  auto& [status, body] = answer.value();
  if (status == 200) return std::move(body);
  while (body.ends_with('\n')) body.pop_back();
  return Error{ErrorCode::unavailable,
               fmt::format("{} answers {}: {}", url_of(host, port, path), status, body)};
}

}  // namespace rivulet::runtime
