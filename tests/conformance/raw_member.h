#pragma once
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "sync/transport/gloo/frame_check.h"
#include "sync/transport/gloo/rank_address.h"
#include "tests/support/wait.h"

namespace rivulet::testing {

/// Rank 1 of a view of two with a FolderBook. It connects as a member does, by plain sockets, and then sends
/// arbitrary bytes.
class RawMember {
 public:
  /// `at_once`: sent on the first connection after its number; then no others are opened.
  RawMember(std::filesystem::path folder, std::uint64_t token, const std::string& at_once = "");
  ~RawMember();
  RawMember(const RawMember&) = delete;
  RawMember& operator=(const RawMember&) = delete;

  /// All meshes are connected.
  [[nodiscard]] bool connected() const { return fds_.size() == sync::gloo_door::meshes; }
  /// False: the peer has closed it.
  bool send(int mesh, const std::string& bytes) const;
  /// Discards received bytes until the peer closes. False: it did not in time.
  bool closed_within(int mesh, int ms) const;

 private:
  bool join_mesh(const std::string& at_once);

  const std::filesystem::path folder_;
  const std::string token_;
  std::vector<std::string> seen_;  ///< keys of rank 0
  std::vector<int> fds_;           ///< by mesh
};

/// A member that only publishes its addresses.
class SilentMember {
 public:
  SilentMember(const std::filesystem::path& folder, std::uint64_t token) {
    const std::string begins = std::to_string(token) + "-";
    while (published_ < sync::gloo_door::meshes &&
           wait_until([&] { return publish(folder, begins); }, longest)) {
    }
  }
  [[nodiscard]] bool published() const { return published_ == sync::gloo_door::meshes; }

 private:
  static constexpr auto longest = std::chrono::seconds(20);
  bool publish(const std::filesystem::path& folder, const std::string& begins);
  int published_ = 0;
};

/// A preamble and its payload.
inline std::string frame(const sync::gloo_door::Preamble& preamble, const std::string& payload = "");
/// A message in Gloo's format.
inline std::string message(int tag, const std::string& payload);

/// Above the peer's address, so that this side connects.
inline sync::gloo_door::Blob blob_of_raw_member() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  inet_pton(AF_INET, "127.0.0.2", &address.sin_addr);
  const std::uint64_t host = 0;
  const std::uint64_t length = sizeof(sockaddr_storage) + 8;
  sync::gloo_door::Blob blob(8 + 8 + length + 2 * sizeof(std::int64_t));
  std::memcpy(blob.data(), &host, 8);
  std::memcpy(blob.data() + 8, &length, 8);
  std::memcpy(blob.data() + 16, &address, sizeof address);
  return sync::gloo_door::seal(std::move(blob), "");
}

inline void publish_raw_member(const std::filesystem::path& own) {
  const sync::gloo_door::Blob blob = blob_of_raw_member();
  std::ofstream(own.string() + ".new", std::ios::binary)
      .write(reinterpret_cast<const char*>(blob.data()), static_cast<std::streamsize>(blob.size()));
  std::filesystem::rename(own.string() + ".new", own);
}

inline bool SilentMember::publish(const std::filesystem::path& folder, const std::string& begins) {
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    const auto own = folder / (name.substr(0, name.size() - 1) + "1");
    if (!name.starts_with(begins) || !name.ends_with("_0") || std::filesystem::exists(own)) continue;
    publish_raw_member(own);
    ++published_;
    return true;
  }
  return false;
}

inline int dial_peer(const sockaddr_storage& to) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(sockaddr_in)) == 0) return fd;
  ::close(fd);
  return -1;
}

inline RawMember::RawMember(std::filesystem::path folder, std::uint64_t token, const std::string& at_once)
    : folder_(std::move(folder)), token_(std::to_string(token) + "-") {
  const int wanted = at_once.empty() ? sync::gloo_door::meshes : 1;
  for (int mesh = 0; mesh < wanted; ++mesh)
    if (!wait_until([&] { return join_mesh(at_once); }, std::chrono::seconds(20))) return;
}

inline RawMember::~RawMember() {
  for (const int fd : fds_) ::close(fd);
}

/// True: rank 0 has published a new address.
inline bool RawMember::join_mesh(const std::string& at_once) {
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    const std::string name = entry.path().filename().string();
    const bool mine = name.starts_with(token_) && name.ends_with("_0");
    if (!mine || std::ranges::count(seen_, name) > 0) continue;
    seen_.push_back(name);
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto theirs = sync::gloo_door::unseal(sync::gloo_door::Blob(text.begin(), text.end()));
    const int fd = dial_peer(*sync::gloo_door::address_in(theirs->blob));
    if (fd < 0) return false;
    fds_.push_back(fd);
    std::int64_t number = 0;  // the last of two: of rank 1
    std::memcpy(&number, theirs->blob.data() + theirs->blob.size() - sizeof number, sizeof number);
    std::string greeting(sizeof number, '\0');
    std::memcpy(greeting.data(), &number, sizeof number);
    send(static_cast<int>(fds_.size()) - 1, greeting + at_once);
    publish_raw_member(folder_ / (name.substr(0, name.size() - 1) + "1"));
    return true;
  }
  return false;
}

inline bool RawMember::send(int mesh, const std::string& bytes) const {
  const int fd = fds_[static_cast<std::size_t>(mesh)];
  return ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

inline bool RawMember::closed_within(int mesh, int ms) const {
  pollfd p{fds_[static_cast<std::size_t>(mesh)], POLLIN, 0};
  std::array<char, 4096> bytes{};
  while (::poll(&p, 1, ms) == 1)
    if (::recv(p.fd, bytes.data(), bytes.size(), 0) <= 0) return true;
  return false;
}

inline std::string frame(const sync::gloo_door::Preamble& preamble, const std::string& payload) {
  std::string bytes(sizeof preamble, '\0');
  std::memcpy(bytes.data(), &preamble, sizeof preamble);
  return bytes + payload;
}

inline std::string message(int tag, const std::string& payload) {
  return frame({.bytes = sizeof(sync::gloo_door::Preamble) + payload.size(),
                .opcode = sync::gloo_door::Preamble::message,
                .slot = static_cast<std::uint64_t>(tag),
                .length = payload.size()},
               payload);
}

}  // namespace rivulet::testing
