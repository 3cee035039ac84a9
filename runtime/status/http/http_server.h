#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/result.h"
#include "runtime/process/stop.h"
#include "runtime/status/http/access.h"

namespace rivulet::runtime {

/// Read-only GET pages on libmicrohttpd: / for browsers, /metrics /livez /readyz /api/v1/status /api/v1/group
/// for programs. If a token is configured, the probes answer requests without it, but give no reason.
///
/// One thread, "http", reads all requests and makes all answers, so the Pages callbacks must not block. Idle
/// or slow clients do not delay others: a request head must arrive within two seconds, and the client must
/// read the answer within ten. Keeps at most 256 connections without a complete head and 32 unread answers;
/// beyond that it closes the oldest. Memory per connection: 16 KiB, plus the page that it is being sent.
class HttpServer {
 public:
  struct Pages {
    std::function<std::string()> metrics;
    std::function<bool(std::string& why)> live;   ///< all threads make progress; independent of the broker
    std::function<bool(std::string& why)> ready;  ///< group formed, broker reachable
    std::function<std::string()> status_json;
    std::function<std::string()> group_json;
    std::function<std::string(const std::string& nonce)> page;  ///< HTML page served at /
  };
  /// `listen`: "127.0.0.1:9464"; port 0 picks a free one. Errors: unavailable (port in use: names the
  /// address), invalid_config (not ADDRESS:PORT, or reachable from other machines without a token).
  static Result<std::unique_ptr<HttpServer>> start(const std::string& listen, Pages pages,
                                                   const Access& access = {});
  virtual ~HttpServer() = default;  ///< closes all connections
  static std::string library_version();
  [[nodiscard]] virtual int port() const noexcept = 0;
};

/// Answer of a server.
struct HttpAnswer {
  int status = 0;  ///< 200, 503, ...
  std::string body;
};

/// Requests GET http://host:port/path. Limits: four seconds in total, 4 MiB; no redirects, no proxy. `host`:
/// a name or an address; an address with colons is in brackets. `authorization`: Access::header(). Raising
/// `stop` cancels the request: immediately if the signal interrupts this thread, else within a second.
/// Errors: unavailable (no answer, or an incomplete one; names the address). Any thread.
Result<HttpAnswer> http_request(const std::string& host, int port, const std::string& path,
                                const std::string& authorization, const StopRequest* stop = nullptr);

/// Like http_request(), but treats any status other than 200 as an error. Errors: unavailable (the message
/// includes the body of such an answer).
Result<std::string> http_get(const std::string& host, int port, const std::string& path,
                             const std::string& authorization = "");

}  // namespace rivulet::runtime
