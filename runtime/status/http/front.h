#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "core/result.h"
#include "runtime/status/http/address.h"
#include "runtime/status/http/answer.h"

namespace rivulet::runtime {

/// A probe that can be answered at once: GET of /livez or /readyz in a whole head without anything unusual in
/// it. Empty: a matter for the server of pages. Views into `head`. Pure.
std::optional<HttpRequest> plain_probe(std::string_view head);

/// Where connections to the pages arrive. One thread reads the heads of all requests at once, answers plain
/// probes itself, and hands the others on when they are whole, a few at a time, to a server on loopback that
/// makes the pages. So a client that sends nothing, or half of something, holds up nobody: a probe is
/// answered while one more can be accepted. Of connections that have yet to send their request 256 are kept;
/// for the next one the oldest is closed.
class Front {
 public:
  using Answer = std::function<PageAnswer(const HttpRequest&)>;
  static constexpr std::size_t waiting_most = 256;
  static constexpr std::size_t handed_on_most = 32;

  /// Listens; nobody is served before serve(). Errors: unavailable (the reason in the system's words).
  static Result<std::unique_ptr<Front>> open(const Address& address);
  virtual ~Front() = default;  ///< ends the thread, closes all connections
  /// `pages`: port of the server behind. `probe` is called on the front's own thread.
  virtual void serve(int pages, Answer probe) = 0;
  [[nodiscard]] virtual int port() const noexcept = 0;
};

}  // namespace rivulet::runtime
