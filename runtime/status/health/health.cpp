#include "runtime/status/health/health.h"

#include <algorithm>

namespace rivulet::runtime {

std::string_view name_of(Grade grade) noexcept {
  switch (grade) {
    case Grade::waits: return "waits";
    case Grade::useless: return "useless";
    case Grade::impaired: return "impaired";
  }
  return "unknown";
}

bool Health::ready() const noexcept {
  return judged && std::ranges::all_of(
                       findings, [](const Finding& finding) { return finding.grade == Grade::impaired; });
}

std::string Health::why_not() const {
  if (!judged) return "starting";
  std::string out;
  for (const Finding& finding : findings)
    if (finding.grade != Grade::impaired) out += (out.empty() ? "" : "; ") + finding.phrase;
  return out;
}

}  // namespace rivulet::runtime
