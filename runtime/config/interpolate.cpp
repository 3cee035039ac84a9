#include "runtime/config/interpolate.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace rivulet::runtime {

namespace {

constexpr std::size_t file_max_bytes = 1U << 20U;

Error wrong(const std::string& what) {
  return {ErrorCode::invalid_config, what};
}

Result<std::string> read_secret(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return wrong("${file:" + path + "}: the file does not exist or is not readable");
  std::string text(file_max_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad()) return wrong("${file:" + path + "}: cannot be read");
  if (text.size() > file_max_bytes) return wrong("${file:" + path + "}: longer than 1 MiB");
  if (!text.empty() && text.back() == '\n') text.pop_back();
  if (!text.empty() && text.back() == '\r') text.pop_back();
  return text;
}

bool is_name(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

/// Returns the replacement of ${inner}.
Result<std::string> lookup(const std::string& inner,
                           const std::function<std::optional<std::string>(const std::string&)>& variable) {
  if (inner.starts_with("file:")) return read_secret(inner.substr(5));
  const auto colon = inner.find(":-");
  const std::string name = inner.substr(0, colon);
  if (!is_name(name)) return wrong("${" + inner + "}: expected a name, NAME:-default or file:PATH");
  const auto value = variable(name);
  if (colon != std::string::npos) return value && !value->empty() ? *value : inner.substr(colon + 2);
  if (!value) return wrong("${" + name + "} is not set and has no default (${" + name + ":-default})");
  return *value;
}

}  // namespace

Result<Interpolated> interpolate(
    const std::string& text, const std::function<std::optional<std::string>(const std::string&)>& variable) {
  Interpolated out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dollar = text[i] == '$' && i + 1 < text.size();
    if (dollar && text.compare(i, 3, "$${") == 0) {
      out.text += "${";
      i += 2;
    } else if (dollar && text[i + 1] == '{') {
      const auto end = text.find('}', i);
      if (end == std::string::npos) return wrong("'${' without '}'");
      const std::string inner = text.substr(i + 2, end - i - 2);
      auto value = lookup(inner, variable);
      if (!value) return value.error();
      out.text += value.value();
      out.changed = true;
      out.secret = out.secret || inner.starts_with("file:");
      i = end;
    } else {
      out.text += text[i];
    }
  }
  return out;
}

}  // namespace rivulet::runtime
