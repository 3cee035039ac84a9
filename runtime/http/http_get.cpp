#include <civetweb.h>
#include <fmt/format.h>

#include <array>

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
  int get(const std::string& host, const std::string& path) {
    if (connection_ == nullptr) return -1;
    mg_printf(connection_, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", path.c_str(),
              host.c_str());
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

}  // namespace

Result<std::string> http_get(const std::string& host, int port, const std::string& path) {
  const std::string url = fmt::format("http://{}:{}{}", host, port, path);
  Connection connection(host, port);
  const int status = connection.get(host, path);
  if (status < 0) return Error{ErrorCode::unavailable, fmt::format("{}: {}", url, connection.problem())};
  std::string body = connection.body();
  if (status != 200)
    return Error{ErrorCode::unavailable, fmt::format("{} answers {}: {}", url, status, body)};
  if (!connection.complete(body)) return Error{ErrorCode::unavailable, url + ": the answer is cut off"};
  return body;
}

}  // namespace rivulet::runtime
