#pragma once
#include <string>
#include <string_view>

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
  const char* type = "text/plain; charset=utf-8";
  std::string body;
  std::string headers = {};  ///< besides those of every answer; each with its line end
};

/// What is answered, and to whom: every decision of the server. No text of the request gets into the answer.
/// Pure but for the pages that it asks for, and the nonce of the page for browsers.
PageAnswer answer_to(const HttpRequest& request, const HttpServer::Pages& pages, const Access& access);

/// To a request that could not be read; `status`: what the library makes of it.
PageAnswer answer_to_unreadable(int status);

/// Status line and headers, with the empty line behind them.
std::string head_of(const PageAnswer& answer);

}  // namespace rivulet::runtime
