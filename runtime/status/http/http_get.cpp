#include <curl/curl.h>
#include <fmt/format.h>

#include <memory>
#include <string_view>
#include <system_error>
#include <utility>

#include "runtime/status/http/http_server.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t answer_head_most = 16 << 10;
constexpr std::size_t answer_body_most = 4 << 20;
constexpr long exchange_most_ms = 4000;

/// An answer being received.
struct Incoming {
  const StopRequest* stop = nullptr;
  std::string body;
  std::size_t head_bytes = 0;
  bool head_whole = false;
};

std::size_t take_head_line(const char* line, std::size_t /*one*/, std::size_t bytes, void* to) {
  auto& incoming = *static_cast<Incoming*>(to);
  incoming.head_bytes += bytes;
  incoming.head_whole = std::string_view(line, bytes) == "\r\n";
  return incoming.head_bytes <= answer_head_most ? bytes : 0;
}

std::size_t take_body(const char* part, std::size_t /*one*/, std::size_t bytes, void* to) {
  std::string& body = static_cast<Incoming*>(to)->body;
  body.append(part, bytes);
  return body.size() <= answer_body_most ? bytes : 0;
}

int request_stop(void* to, curl_off_t /*all*/, curl_off_t /*now*/, curl_off_t /*all_up*/,
                 curl_off_t /*now_up*/) {
  const StopRequest* const stop = static_cast<const Incoming*>(to)->stop;
  return stop != nullptr && stop->load() != 0 ? 1 : 0;
}

/// Returns why the answer is invalid; empty if it is valid.
std::string problem(CURLcode code, CURL* curl, const char* detail, const Incoming& incoming) {
  switch (code) {
    case CURLE_OK: return incoming.head_whole ? "" : "the response is incomplete";
    case CURLE_PARTIAL_FILE: return "the response is incomplete";
    case CURLE_GOT_NOTHING: return "connection closed without a response";
    case CURLE_OPERATION_TIMEDOUT: return "no complete response in time";
    case CURLE_FILESIZE_EXCEEDED: return "the response is longer than 4 MiB";
    case CURLE_WRITE_ERROR:
      return incoming.head_whole ? "the response is longer than 4 MiB" : "the response is not HTTP";
    case CURLE_UNSUPPORTED_PROTOCOL:  // 0.9
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_OUT_OF_MEMORY:  // a header line beyond libcurl's limit
      return "the response is not HTTP";
    default: break;
  }
  long number = 0;
  curl_easy_getinfo(curl, CURLINFO_OS_ERRNO, &number);
  if (number != 0) return std::generic_category().message(static_cast<int>(number));
  return *detail != '\0' ? detail : curl_easy_strerror(code);
}

using Handle = std::unique_ptr<CURL, decltype(&curl_easy_cleanup)>;
using Lines = std::unique_ptr<curl_slist, decltype(&curl_slist_free_all)>;

Handle open_handle() {
  // Never cleaned up: other threads may have requests in flight.
  [[maybe_unused]] static const CURLcode once = curl_global_init(CURL_GLOBAL_NOTHING);
  return {curl_easy_init(), curl_easy_cleanup};
}

std::string url_of(const std::string& host, int port, const std::string& path) {
  return fmt::format("http://{}:{}{}", host, port, path);
}

}  // namespace

Result<HttpAnswer> http_request(const std::string& host, int port, const std::string& path,
                                const std::string& authorization, const StopRequest* stop) {
  const Handle handle = open_handle();
  CURL* const curl = handle.get();
  const std::string url = url_of(host, port, path);
  if (curl == nullptr) return Error{ErrorCode::unavailable, url + ": out of memory"};
  Incoming incoming{.stop = stop, .body = {}};
  char detail[CURL_ERROR_SIZE] = "";
  const Lines lines(authorization.empty()
                        ? nullptr
                        : curl_slist_append(nullptr, ("Authorization: " + authorization).c_str()),
                    curl_slist_free_all);
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(curl, CURLOPT_PROXY, "");  // ignores proxies set in the environment
  // HTTP/1.0, so that the server sends no chunked body.
  curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_0));
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines.get());
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, exchange_most_ms);
  curl_easy_setopt(curl, CURLOPT_QUICK_EXIT, 1L);  // also during name resolution
  curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, static_cast<curl_off_t>(answer_body_most));
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_head_line);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &incoming);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &incoming);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, request_stop);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &incoming);
  const CURLcode code = curl_easy_perform(curl);
  if (const std::string why = problem(code, curl, detail, incoming); !why.empty())
    return Error{ErrorCode::unavailable, fmt::format("{}: {}", url, why)};
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  return HttpAnswer{static_cast<int>(status), std::move(incoming.body)};
}

Result<std::string> http_get(const std::string& host, int port, const std::string& path,
                             const std::string& authorization) {
  auto answer = http_request(host, port, path, authorization);
  if (!answer) return answer.error();
  auto& [status, body] = answer.value();
  if (status == 200) return std::move(body);
  while (body.ends_with('\n')) body.pop_back();
  return Error{ErrorCode::unavailable,
               fmt::format("{} answers {}: {}", url_of(host, port, path), status, body)};
}

}  // namespace rivulet::runtime
