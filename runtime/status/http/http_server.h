#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/result.h"
#include "runtime/status/http/access.h"

namespace rivulet::runtime {

/// Read-only GET pages on civetweb: / for people, /metrics /livez /readyz /api/v1/status /api/v1/group for
/// programs. Where a token is needed, the probes answer without it, but only whether, not why.
class HttpServer {
 public:
  struct Pages {
    std::function<std::string()> metrics;
    std::function<bool(std::string& why)> live;   ///< threads beat; never the broker
    std::function<bool(std::string& why)> ready;  ///< group formed, broker there
    std::function<std::string()> status_json;
    std::function<std::string()> group_json;
    std::function<std::string(const std::string& nonce)> page;  ///< what a browser is shown at /
  };
  /// "127.0.0.1:9464"; port 0 picks one. Errors: unavailable (port taken: names the address), invalid_config
  /// (not ADDRESS:PORT, or others than this machine reach it and no token is needed).
  static Result<std::unique_ptr<HttpServer>> start(const std::string& listen, Pages pages,
                                                   const Access& access = {});
  virtual ~HttpServer() = default;
  [[nodiscard]] virtual int port() const noexcept = 0;
};

/// What a server answered.
struct HttpAnswer {
  int status = 0;  ///< 200, 503, ...
  std::string body;
};

/// GET http://host:port/path, within four seconds from the first byte to the last, 4 MiB at most; a signal
/// that the program handles ends it, too. `authorization`: Access::header(). Errors: unavailable (nobody
/// answers, or not wholly; names the address).
Result<HttpAnswer> http_ask(const std::string& host, int port, const std::string& path,
                            const std::string& authorization);

/// The same for who wants the page or nothing. Errors: unavailable (also if the answer is not 200: what it
/// says).
Result<std::string> http_get(const std::string& host, int port, const std::string& path,
                             const std::string& authorization = "");

}  // namespace rivulet::runtime
