#pragma once
#include <functional>
#include <memory>
#include <string>

#include "core/result.h"
#include "runtime/process/stop.h"
#include "runtime/status/http/access.h"

namespace rivulet::runtime {

/// Read-only GET pages on libmicrohttpd: / for people, /metrics /livez /readyz /api/v1/status /api/v1/group
/// for programs. Where a token is needed, the probes answer without it, but only whether, not why.
///
/// One thread, "http", reads all requests and makes all answers, so what Pages call must not wait. A client
/// that sends nothing, or half of something, holds up nobody: a head has two seconds to arrive, an answer ten
/// to be taken. Of connections without a whole head 256 are kept, and 32 answers that have yet to be taken;
/// for the next one the oldest is closed. Memory: 16 KiB for each connection, and its page.
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
  virtual ~HttpServer() = default;  ///< closes all connections
  static std::string library_version();
  [[nodiscard]] virtual int port() const noexcept = 0;
};

/// What a server answered.
struct HttpAnswer {
  int status = 0;  ///< 200, 503, ...
  std::string body;
};

/// GET http://host:port/path, within four seconds from the first byte to the last, 4 MiB at most; no redirect
/// is followed and no proxy asked. `host`: a name or a number, in brackets if it has colons. `authorization`:
/// Access::header(). `stop`: ends it when it is raised, at once if the signal interrupts this thread, within
/// a second otherwise. Errors: unavailable (nobody answers, or not wholly; names the address). Any thread.
Result<HttpAnswer> http_ask(const std::string& host, int port, const std::string& path,
                            const std::string& authorization, const StopRequest* stop = nullptr);

/// The same for who wants the page or nothing. Errors: unavailable (also if the answer is not 200: what it
/// says).
Result<std::string> http_get(const std::string& host, int port, const std::string& path,
                             const std::string& authorization = "");

}  // namespace rivulet::runtime
