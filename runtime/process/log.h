#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/metrics.h"
#include "core/result.h"

namespace rivulet::runtime {

enum class Level : std::uint8_t { debug, info, warn, error };

/// key=value pairs after the message.
using Fields = std::vector<std::pair<std::string_view, std::string>>;

/// Structured lines on stderr: pretty on a terminal (honours NO_COLOR), logfmt otherwise, or JSON. Repeats
/// within a second are counted, and the count is logged once ("(repeated 41 times)"). Thread-safe.
class Logger {
 public:
  virtual ~Logger() = default;
  virtual void write(Level level, std::string_view message, const Fields& fields = {}) = 0;
};

/// format: auto | pretty | logfmt | json; level: debug | info | warn | error. Errors: invalid_config.
Result<std::unique_ptr<Logger>> make_logger(const std::string& level, const std::string& format,
                                            MetricsSink& metrics);
/// Discards everything.
std::unique_ptr<Logger> make_null_logger();

}  // namespace rivulet::runtime
