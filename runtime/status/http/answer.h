#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/status/http/access.h"
#include "runtime/status/http/http_server.h"

namespace rivulet::runtime {

/// What of a request an answer depends on, as it was sent: nothing is decoded or tidied up first, so nothing
/// can be understood in two ways.
struct HttpRequest {
  std::string_view method;
  std::string_view path;           ///< without the query
  std::string_view authorization;  ///< of that header; empty if there is none
};

struct PageAnswer {
  int status = 200;
  std::string body;
  std::vector<std::pair<const char*, std::string>> headers;  ///< besides Content-Length and Connection
};

/// What is answered, and to whom: every decision of the server. No text of the request gets into the answer.
/// Pure but for the pages that it asks for, and the nonce of the page for browsers.
PageAnswer answer_to(const HttpRequest& request, const HttpServer::Pages& pages, const Access& access);

/// To a request whose head is too long, or comes too slowly: 400.
PageAnswer answer_to_unreadable();

}  // namespace rivulet::runtime
