#include "runtime/process/log_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>

#include "core/printable.h"

namespace rivulet::runtime {
namespace {

constexpr std::string_view levels[] = {"debug", "info", "warn", "error"};
constexpr std::string_view colors[] = {"\x1b[2m", "\x1b[32m", "\x1b[33m", "\x1b[31m"};
constexpr std::string_view color_end = "\x1b[0m";

std::string time_text(long long time_ms, const char* pattern) {
  const std::time_t seconds = time_ms / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  const std::size_t size = std::strftime(text, sizeof text, pattern, &parts);
  return fmt::format("{}.{:03}", std::string_view(text, size), time_ms % 1000);
}

/// Escapes the text, so that it cannot add a line or an escape sequence.
std::string in_quotes(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return '"' + printable(out) + '"';
}

bool plain(std::string_view text) {
  return !text.empty() && text.find_first_of(" \"=\\") == std::string_view::npos && printable(text) == text;
}

void append_pair(std::string& out, std::string_view name, std::string_view value) {
  out.append(printable(name)).append("=").append(plain(value) ? value : in_quotes(value));
}

std::string logfmt(long long time_ms, Level level, std::string_view message, const Fields& fields) {
  std::string out =
      fmt::format("time={}Z level={} ", time_text(time_ms, "%Y-%m-%dT%H:%M:%S"), name_of(level));
  append_pair(out, "msg", message);
  for (const auto& [name, value] : fields) {
    out += ' ';
    append_pair(out, name, value);
  }
  return out;
}

std::string json_line(long long time_ms, Level level, std::string_view message, const Fields& fields) {
  nlohmann::ordered_json out;
  out["time"] = time_text(time_ms, "%Y-%m-%dT%H:%M:%S") + "Z";
  out["level"] = name_of(level);
  out["msg"] = message;
  for (const auto& [name, value] : fields) out[std::string(name)] = value;
  return printable(out.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

std::string pretty(bool color, long long time_ms, Level level, std::string_view message,
                   const Fields& fields) {
  const auto index = static_cast<std::size_t>(level);
  std::string out = fmt::format("{} {}{:5}{} ", time_text(time_ms, "%H:%M:%S"), color ? colors[index] : "",
                                levels[index], color ? color_end : "");
  out += printable(message);
  for (const auto& [name, value] : fields) {
    out += "  ";
    append_pair(out, name, value);
  }
  return out;
}

std::string text_of(const Fields& fields) {
  std::string out;
  for (const auto& [name, value] : fields) out += fmt::format("{}={}\n", name, value);
  return out;
}

}  // namespace

std::string_view name_of(Level level) noexcept {
  return levels[static_cast<std::size_t>(level)];
}

std::string format_line(LogFormat format, long long time_ms, Level level, std::string_view message,
                        const Fields& fields) {
  switch (format) {
    case LogFormat::json: return json_line(time_ms, level, message, fields);
    case LogFormat::logfmt: return logfmt(time_ms, level, message, fields);
    case LogFormat::pretty: return pretty(false, time_ms, level, message, fields);
    case LogFormat::pretty_color: return pretty(true, time_ms, level, message, fields);
  }
  return {};
}

bool RepeatFilter::admit(TimePoint now, Level level, std::string_view message, const Fields& fields) {
  const std::pair<Level, std::string> key(level, message);
  auto it = seen_.find(key);
  if (it == seen_.end()) {
    if (seen_.size() >= messages_max) return true;
    it = seen_.try_emplace(key).first;
    it->second.begin = now;
    next_end_ = std::min(next_end_, now + window);
  }
  Seen& seen = it->second;
  std::string text = text_of(fields);
  if (seen.logged > 0 && (seen.logged >= varied_max || seen.fields == text)) {
    ++seen.swallowed;
    return false;
  }
  ++seen.logged;
  seen.fields = std::move(text);
  return true;
}

std::vector<RepeatFilter::Swallowed> RepeatFilter::take_ended(TimePoint now) {
  std::vector<Swallowed> out;
  if (now < next_end_) return out;
  next_end_ = TimePoint::max();
  for (auto it = seen_.begin(); it != seen_.end();) {
    const TimePoint end = it->second.begin + window;
    if (end > now) {
      next_end_ = std::min(next_end_, end);
      ++it;
      continue;
    }
    if (it->second.swallowed > 0) out.push_back({it->first.first, it->first.second, it->second.swallowed});
    it = seen_.erase(it);
  }
  return out;
}

}  // namespace rivulet::runtime
