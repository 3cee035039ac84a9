// Replaces a Gloo header that LibTorch's wheel lacks. The functions defined in gloo_pair.cpp replace those of
// LibTorch: LibTorch's own calls go through the loader, which finds the program's functions first.
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

/// The operation being read, created by LibTorch with this layout.
struct Op {
  rivulet::sync::gloo_door::Preamble preamble;
  void* buffer;
  void* receiver[2];  ///< a weak pointer; empty until the message has a receive
  std::size_t bytes_read;
  std::size_t bytes_written;
  std::size_t offset;
  std::size_t awaited;  ///< length of that receive
};

class Pair {
 public:
  /// Called with the pair's lock held.
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
