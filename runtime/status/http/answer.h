#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/status/http/access.h"
#include "runtime/status/http/http_server.h"

namespace rivulet::runtime {

/// The parts of a request that determine the answer, byte for byte as sent: nothing is decoded or normalized,
/// so no request is ambiguous.
struct HttpRequest {
  std::string_view method;
  std::string_view path;           ///< without query string
  std::string_view authorization;  ///< value of that header; empty if absent
};

struct PageAnswer {
  int status = 200;
  std::string body;
  std::vector<std::pair<const char*, std::string>> headers;  ///< other than Content-Length and Connection
};

/// Makes every decision of the server: content and access. No text of the request appears in the answer. Pure
/// except for the page callbacks and the nonce of the HTML page.
PageAnswer answer_to(const HttpRequest& request, const HttpServer::Pages& pages, const Access& access);

/// Returns the answer to a request whose head is too long or arrives too slowly: 400.
PageAnswer answer_to_unreadable();

}  // namespace rivulet::runtime
