#include <civetweb.h>
#include <fmt/format.h>

#include <array>
#include <utility>

#include "runtime/http/civetweb_library.h"
#include "runtime/http/http_server.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t body_max = 4 << 20;
constexpr int answer_timeout_ms = 2000;

/// One request and its answer.
class Connection {
 public:
  Connection(const std::string& host, int port) {
    use_civetweb();
    connection_ = mg_connect_client(host.c_str(), port, 0, problem_.data(), problem_.size());
  }
  ~Connection() {
    if (connection_ != nullptr) mg_close_connection(connection_);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// The status of the answer to GET path, or -1.
  int get(const std::string& host, const std::string& path, const std::string& authorization) {
    if (connection_ == nullptr) return -1;
    const auto said = authorization.empty() ? "" : fmt::format("Authorization: {}\r\n", authorization);
    mg_printf(connection_, "GET %s HTTP/1.1\r\nHost: %s\r\n%sConnection: close\r\n\r\n", path.c_str(),
              host.c_str(), said.c_str());
    if (mg_get_response(connection_, problem_.data(), problem_.size(), answer_timeout_ms) < 0) return -1;
    return mg_get_response_info(connection_)->status_code;
  }
  std::string body() {
    std::string out;
    std::array<char, 8192> part{};
    for (int n = 0; out.size() < body_max && (n = mg_read(connection_, part.data(), part.size())) > 0;) {
      out.append(part.data(), static_cast<std::size_t>(n));
    }
    return out;
  }
  /// Is all of the body there that the answer announced?
  bool complete(const std::string& body) const {
    const long long announced = mg_get_response_info(connection_)->content_length;
    return announced < 0 || static_cast<unsigned long long>(announced) == body.size();
  }
  [[nodiscard]] std::string problem() const { return problem_.data(); }

 private:
  std::array<char, 256> problem_{};
  mg_connection* connection_ = nullptr;
};

std::string url_of(const std::string& host, int port, const std::string& path) {
  return fmt::format("http://{}:{}{}", host, port, path);
}

}  // namespace

Result<HttpAnswer> http_ask(const std::string& host, int port, const std::string& path,
                            const std::string& authorization) {
  const auto failed = [&](const std::string& why) {
    return Error{ErrorCode::unavailable, url_of(host, port, path) + ": " + why};
  };
  Connection connection(host, port);
  const int status = connection.get(host, path, authorization);
  if (status < 0) return failed(connection.problem());
  std::string body = connection.body();
  if (!connection.complete(body)) return failed("the answer is cut off");
  return HttpAnswer{status, std::move(body)};
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
