#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/result.h"

namespace rivulet::runtime {

/// Read-only GET pages on civetweb: /metrics /livez /readyz /api/v1/status and a plain index at / .
class HttpServer {
 public:
  struct Pages {
    std::function<std::string()> metrics;
    std::function<bool(std::string& why)> live;   ///< threads beat; never the broker
    std::function<bool(std::string& why)> ready;  ///< group formed
    std::function<std::string()> status_json;
  };
  /// "127.0.0.1:9464"; port 0 picks one. Errors: unavailable (port taken: names the address), invalid_config
  /// (not HOST:PORT, or not loopback: refused in this version, with the reason).
  static Result<std::unique_ptr<HttpServer>> start(const std::string& listen, Pages pages);
  virtual ~HttpServer() = default;
  [[nodiscard]] virtual int port() const noexcept = 0;
};

/// GET http://host:port/path over loopback, for the live view. Errors: unavailable.
Result<std::string> http_get(const std::string& host, int port, const std::string& path);

}  // namespace rivulet::runtime
