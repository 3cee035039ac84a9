#pragma once
#include <string>

#include "runtime/status/history.h"

namespace rivulet::runtime {

/// The page that a browser is shown at `/`, whole: what status_json() and group_json() hold, in tables that
/// need no script. `nonce` is what the answer's Content-Security-Policy lets script and style of this page
/// have. Every text of theirs is escaped; JSON that is not theirs gives a page with that error. Pure. The
/// template, with style and script, is page/status_page.html. `history`: what its charts begin with, if kept.
std::string status_page(const std::string& status_json, const std::string& group_json,
                        const std::string& nonce, const History* history = nullptr);

}  // namespace rivulet::runtime
