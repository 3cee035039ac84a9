#pragma once
// Only files of devices/torch and devices/model/torch include this header: it includes LibTorch.
#include <c10/util/Exception.h>

#include <new>
#include <string>

#include "core/result.h"
#include "devices/script_words.h"

namespace rivulet::devices {

/// Turns the library's exceptions into errors: none leaves the files that include this header.
template <class T, class Body>
Result<T> guarded(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::unavailable, "LibTorch: out of memory"};
  } catch (const c10::OutOfMemoryError& e) {  // of a GPU
    return Error{ErrorCode::unavailable, "LibTorch: " + readable(e.what_without_backtrace())};
  } catch (const c10::Error& e) {
    const std::string words = e.what_without_backtrace();
    const bool memory = words.find("allocate memory") != std::string::npos;
    return Error{memory ? ErrorCode::unavailable : ErrorCode::io, "LibTorch: " + readable(words)};
  } catch (const std::exception& e) {
    return Error{ErrorCode::io, "LibTorch: " + readable(e.what())};
  }
}

}  // namespace rivulet::devices
