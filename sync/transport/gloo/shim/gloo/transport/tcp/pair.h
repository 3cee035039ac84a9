// Stands in for a Gloo header that LibTorch's wheel lacks. What is defined in gloo_pair.cpp takes the place
// of what LibTorch has: its own calls go through the loader and find the program's first.
#pragma once
#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

#include "sync/transport/gloo/frame_check.h"

namespace gloo {

template <class T>
class NonOwningPtr;

namespace transport::tcp {

class Address;
class Error;
class Socket;
class UnboundBuffer;

/// What is being read. As in LibTorch, which makes it.
struct Op {
  rivulet::sync::gloo_door::Preamble preamble;
  void* buffer;
  void* receiver[2];  ///< a weak pointer; empty until a receive is found for a message
  std::size_t bytes_read;
  std::size_t bytes_written;
  std::size_t offset;
  std::size_t awaited;  ///< of that receive
};

class Pair {
 public:
  /// With the lock of the pair.
  bool read();
  ssize_t prepareRead(Op& op, NonOwningPtr<UnboundBuffer>& buffer, iovec& into);
  void signalException(std::exception_ptr error);
  void waitUntilConnected(std::unique_lock<std::mutex>& lock, bool use_timeout);
};

class Device {
 public:
  using connect_callback_t = std::function<void(std::shared_ptr<Socket>, const Error&)>;
  void connect(const Address& local, const Address& remote, int rank, int size,
               std::chrono::milliseconds timeout, connect_callback_t connected);
};

}  // namespace transport::tcp
}  // namespace gloo
