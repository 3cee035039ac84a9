#include "runtime/config/secrets.h"

#include <algorithm>

#include "core/printable.h"

namespace rivulet::runtime {
namespace {

constexpr std::size_t least = 4;

void mask_whole(std::string& text, const Secret& secret) {
  for (auto at = text.find(secret.value); at != std::string::npos;
       at = text.find(secret.value, at + secret.shown.size()))
    text.replace(at, secret.value.size(), secret.shown);
}

void mask_cut(std::string& text, const Secret& secret) {
  for (std::size_t n = std::min(secret.value.size(), text.size()); n >= least; --n)
    if (text.ends_with(secret.value.substr(0, n))) {
      text.replace(text.size() - n, n, secret.shown);
      return;
    }
}

}  // namespace

std::string masked(std::string text, std::vector<Secret> secrets) {
  for (std::size_t i = 0, n = secrets.size(); i < n; ++i)
    if (std::string escaped = printable(secrets[i].value); escaped != secrets[i].value)
      secrets.push_back({std::move(escaped), secrets[i].shown});
  std::erase_if(secrets, [](const Secret& s) { return s.value.size() < least || s.value == s.shown; });
  // Longest first: one secret may be part of another.
  std::ranges::stable_sort(secrets,
                           [](const auto& a, const auto& b) { return a.value.size() > b.value.size(); });
  for (const auto& secret : secrets) mask_whole(text, secret);
  for (const auto& secret : secrets) mask_cut(text, secret);
  return text;
}

}  // namespace rivulet::runtime
