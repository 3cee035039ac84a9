// Replaces a Gloo header that LibTorch's wheel lacks. The functions defined here or in gloo_socket.cpp
// replace those of LibTorch: its own calls go through the loader, which finds the program's functions first.
#pragma once
#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <memory>

namespace gloo::transport::tcp {

class Socket final : public std::enable_shared_from_this<Socket> {
 public:
  explicit Socket(int fd) : fd_(fd) {}
  ~Socket() {
    if (fd_ >= 0) ::close(fd_);
  }
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  void listen(int backlog);
  std::shared_ptr<Socket> accept();
  ssize_t read(void* buffer, std::size_t bytes);

 private:
  int fd_;
};

}  // namespace gloo::transport::tcp
