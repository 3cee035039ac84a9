#include "runtime/config/secrets.h"

#include <algorithm>

namespace rivulet::runtime {
namespace {

constexpr std::size_t least = 4;
constexpr const char* mask = "***";

void mask_whole(std::string& text, const std::string& secret) {
  for (auto at = text.find(secret); at != std::string::npos; at = text.find(secret, at))
    text.replace(at, secret.size(), mask);
}

void mask_cut(std::string& text, const std::string& secret) {
  for (std::size_t n = std::min(secret.size(), text.size()); n >= least; --n)
    if (text.ends_with(secret.substr(0, n))) {
      text.replace(text.size() - n, n, mask);
      return;
    }
}

}  // namespace

std::string masked(std::string text, std::vector<std::string> secrets) {
  std::erase_if(secrets, [](const std::string& s) { return s.size() < least || s == mask; });
  // One may be a part of another.
  std::ranges::sort(secrets, [](const auto& a, const auto& b) { return a.size() > b.size(); });
  for (const auto& secret : secrets) mask_whole(text, secret);
  for (const auto& secret : secrets) mask_cut(text, secret);
  return text;
}

}  // namespace rivulet::runtime
