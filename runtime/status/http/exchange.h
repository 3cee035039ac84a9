#pragma once
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/result.h"

namespace rivulet::runtime {

/// One TCP connection whose every wait ends at the same moment, or with a signal that the program handles, so
/// that the other machine never holds up who asks it. Only the system's look-up of a name is not
/// bounded. Errors: unavailable, in words that leave out the address. Owner: one thread.
class Exchange {
 public:
  explicit Exchange(Duration most) : end_(clock_.now() + most) {}
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  /// `host`: a name or a number, in brackets if it has colons.
  Status connect(const std::string& host, int port);
  Status send(std::string_view text);
  /// What has come, added to `text`; false: the other side has closed.
  Result<bool> receive(std::string& text);

 private:
  Status wait_for(short events) const;
  const RealClock clock_;
  const TimePoint end_;
  int fd_ = -1;
};

}  // namespace rivulet::runtime
