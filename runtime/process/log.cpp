#include "runtime/process/log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "core/clock.h"
#include "runtime/process/log_line.h"

namespace rivulet::runtime {
namespace {

bool for_people(LogFormat format) {
  return format == LogFormat::pretty || format == LogFormat::pretty_color;
}

std::optional<Level> parse_level(std::string_view text) {
  for (const Level level : {Level::debug, Level::info, Level::warn, Level::error}) {
    if (name_of(level) == text) return level;
  }
  return std::nullopt;
}

/// Colours only if stderr is a terminal and NO_COLOR is unset (no-color.org).
LogFormat pretty_format() {
  const char* no_color =
      std::getenv("NO_COLOR");  // NOLINT(concurrency-mt-unsafe): the environment is constant
  const bool wanted = no_color == nullptr || *no_color == '\0';
  return wanted && isatty(STDERR_FILENO) != 0 ? LogFormat::pretty_color : LogFormat::pretty;
}

std::optional<LogFormat> parse_format(std::string_view text) {
  if (text == "json") return LogFormat::json;
  if (text == "logfmt") return LogFormat::logfmt;
  if (text == "pretty") return pretty_format();
  if (text == "auto") return isatty(STDERR_FILENO) != 0 ? pretty_format() : LogFormat::logfmt;
  return std::nullopt;
}

spdlog::level::level_enum spdlog_level(Level level) {
  switch (level) {
    case Level::debug: return spdlog::level::debug;
    case Level::info: return spdlog::level::info;
    case Level::warn: return spdlog::level::warn;
    case Level::error: return spdlog::level::err;
  }
  return spdlog::level::info;
}

class SpdlogLogger final : public Logger {
 public:
  SpdlogLogger(Level level, LogFormat format, MetricsSink& metrics)
      : format_(format), out_("rivulet", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    out_.set_formatter(std::make_unique<spdlog::pattern_formatter>("%v", spdlog::pattern_time_type::utc));
    out_.set_level(spdlog_level(level));
    out_.flush_on(spdlog::level::trace);
    for (const Level l : {Level::debug, Level::info, Level::warn, Level::error}) {
      written_[static_cast<std::size_t>(l)] = &metrics.counter("log_messages_total", {{"level", name_of(l)}});
    }
  }
  ~SpdlogLogger() override {
    const std::lock_guard lock(mutex_);
    report_swallowed(TimePoint::max());
  }

  void write(Level level, std::string_view message, const Fields& fields) override {
    if (!out_.should_log(spdlog_level(level))) return;
    const std::lock_guard lock(mutex_);
    const TimePoint now = clock_.now();
    report_swallowed(now);
    if (repeats_.admit(now, level, message, fields)) put(level, message, fields);
  }

 private:
  void put(Level level, std::string_view message, const Fields& fields) {
    written_[static_cast<std::size_t>(level)]->add(1);
    const std::string line = begin_ + format_line(format_, unix_time_ms(), level, message, fields);
    out_.log(spdlog_level(level), spdlog::string_view_t(line.data(), line.size()));
  }
  void report_swallowed(TimePoint now) {
    for (const auto& s : repeats_.take_ended(now)) {
      put(s.level, fmt::format("{} (repeated {} times)", s.message, s.count), {});
    }
  }

  // constant
  const RealClock clock_;
  const LogFormat format_;
  /// Clears a progress line on a terminal; it is redrawn below.
  const std::string begin_ = isatty(STDERR_FILENO) != 0 && for_people(format_) ? "\r\x1b[2K" : "";
  std::array<Counter*, 4> written_{};
  // shared; log lines and repeat counts change together
  std::mutex mutex_;
  RepeatFilter repeats_;
  spdlog::logger out_;
};

class NullLogger final : public Logger {
 public:
  void write(Level, std::string_view, const Fields&) override {}
};

}  // namespace

Result<std::unique_ptr<Logger>> make_logger(const std::string& level, const std::string& format,
                                            MetricsSink& metrics) {
  const auto parsed_level = parse_level(level);
  if (!parsed_level) {
    return Error{ErrorCode::invalid_config,
                 fmt::format("log.level = '{}' must be one of: debug, info, warn, error", level)};
  }
  const auto parsed_format = parse_format(format);
  if (!parsed_format) {
    return Error{ErrorCode::invalid_config,
                 fmt::format("log.format = '{}' must be one of: auto, pretty, logfmt, json", format)};
  }
  return std::unique_ptr<Logger>(std::make_unique<SpdlogLogger>(*parsed_level, *parsed_format, metrics));
}

std::unique_ptr<Logger> make_null_logger() {
  return std::make_unique<NullLogger>();
}

}  // namespace rivulet::runtime
