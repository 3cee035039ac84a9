#pragma once
#include <string>

#include "runtime/status/history.h"

namespace rivulet::runtime {

/// Renders the page served at `/`: status_json() and group_json() as tables that need no script. `nonce`
/// allows the page's script and style in the Content-Security-Policy of the answer. Escapes every text; for
/// invalid JSON, returns a page with an error. Pure. Template, style and script: page/status_page.html.
/// `history`: initial data of the charts, if kept.
std::string status_page(const std::string& status_json, const std::string& group_json,
                        const std::string& nonce, const History* history = nullptr);

}  // namespace rivulet::runtime
