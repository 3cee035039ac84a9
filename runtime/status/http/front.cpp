#include "runtime/status/http/front.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <list>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/clock.h"

namespace rivulet::runtime {
namespace {

constexpr auto asking_most = std::chrono::seconds(2);      ///< for a request to arrive
constexpr auto answering_most = std::chrono::seconds(10);  ///< for an answer to be made and taken
constexpr auto leaving_most = std::chrono::seconds(1);     ///< for the client to close
constexpr std::size_t head_most = 8192;
constexpr std::size_t held_most = 65536;  ///< of an answer
constexpr int backlog = 256;

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) noexcept : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

sockaddr_in address_of(const std::string& host, int port) {
  sockaddr_in out{};
  out.sin_family = AF_INET;
  out.sin_port = htons(static_cast<std::uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &out.sin_addr);
  return out;
}

Descriptor tcp_socket() {
  return Descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

bool not_yet(ssize_t n) {
  return n < 0 && (errno == EAGAIN || errno == EINTR || errno == EINPROGRESS);
}

/// One connection, from its first byte to its last.
struct Visit {
  enum class Stage : std::uint8_t {
    asking,     ///< its head comes
    waiting,    ///< the head is here; others are with the pages
    answering,  ///< an answer goes out, ours or that of the pages
    leaving     ///< all is sent
  };
  Stage stage = Stage::asking;
  TimePoint until;
  Descriptor client;
  Descriptor pages;    ///< to the server behind; open while it may send more
  std::string said;    ///< what has come and has yet to be handed on
  std::string answer;  ///< what has yet to go out
  bool over = false;
};

class FrontDoor final : public Front {
 public:
  FrontDoor(Descriptor listener, int port)
      : listener_(std::move(listener)), port_(port), wake_(::eventfd(0, EFD_CLOEXEC)) {}
  ~FrontDoor() override {
    const std::uint64_t one = 1;
    static_cast<void>(!::write(wake_.get(), &one, sizeof one));
    if (thread_.joinable()) thread_.join();
  }
  FrontDoor(const FrontDoor&) = delete;
  FrontDoor& operator=(const FrontDoor&) = delete;
  void serve(int pages, Answer probe) override {
    pages_ = pages;
    probe_ = std::move(probe);
    thread_ = std::thread([this] { run(); });
    pthread_setname_np(thread_.native_handle(), "http-front");
  }
  [[nodiscard]] int port() const noexcept override { return port_; }

 private:
  using Stage = Visit::Stage;
  void run();
  bool look();
  void accept_all();
  bool make_room();
  void hear(Visit& visit);
  void heard(Visit& visit, bool all);
  void hand_on();
  void talk(Visit& visit);
  void send_answer(Visit& visit);
  void leave(Visit& visit);
  void overdue(Visit& visit);
  [[nodiscard]] int patience_ms() const;
  [[nodiscard]] std::size_t with_pages() const;
  [[nodiscard]] static short wants(const Visit& visit);

  // constant from serve() on
  const Descriptor listener_;
  const int port_;
  const Descriptor wake_;
  const RealClock clock_;
  int pages_ = 0;
  Answer probe_;
  // front thread
  std::list<Visit> visits_;  ///< the oldest first
  std::vector<pollfd> polled_;
  bool crowded_ = false;  ///< no descriptor for one more; until the next look
  std::thread thread_;
};

void FrontDoor::run() {
  while (look()) {
    for (Visit& visit : visits_)
      if (!visit.over && clock_.now() >= visit.until) overdue(visit);
    std::erase_if(visits_, [](const Visit& visit) { return visit.over; });
    hand_on();
  }
}

/// Waits for visits that may continue, and continues them. False: the end.
bool FrontDoor::look() {
  polled_.assign({{wake_.get(), POLLIN, 0}, {crowded_ ? -1 : listener_.get(), POLLIN, 0}});
  for (const Visit& visit : visits_) {
    // Without anything to ask, poll() would report a client that has left again and again.
    const short from_client = wants(visit);
    polled_.push_back({from_client == 0 ? -1 : visit.client.get(), from_client, 0});
    // What the server behind sends is taken when there is room for it.
    const bool room = visit.answer.size() < held_most;
    const int events = (room ? POLLIN : 0) | (visit.said.empty() ? 0 : POLLOUT);
    polled_.push_back({events == 0 ? -1 : visit.pages.get(), static_cast<short>(events), 0});
  }
  ::poll(polled_.data(), polled_.size(), crowded_ ? 50 : patience_ms());
  crowded_ = false;
  if (polled_[0].revents != 0) return false;
  std::size_t i = 2;
  for (auto visit = visits_.begin(); visit != visits_.end(); ++visit, i += 2) {
    const bool client = polled_[i].revents != 0;
    const bool pages = polled_[i + 1].revents != 0;
    if (visit->stage == Stage::asking && client) hear(*visit);
    if (visit->stage == Stage::answering && (client || pages)) talk(*visit);
    if (visit->stage == Stage::leaving && client) leave(*visit);
  }
  if (polled_[1].revents != 0) accept_all();
  return true;
}

short FrontDoor::wants(const Visit& visit) {
  switch (visit.stage) {
    case Stage::asking:
    case Stage::leaving: return POLLIN;
    case Stage::answering: return visit.answer.empty() ? 0 : POLLOUT;
    case Stage::waiting: break;
  }
  return 0;
}

int FrontDoor::patience_ms() const {
  TimePoint next = clock_.now() + std::chrono::seconds(1);
  for (const Visit& visit : visits_) next = std::min(next, visit.until);
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - clock_.now()).count();
  return static_cast<int>(std::max<std::int64_t>(left, 0));
}

std::size_t FrontDoor::with_pages() const {
  return static_cast<std::size_t>(
      std::ranges::count_if(visits_, [](const Visit& visit) { return visit.pages.get() >= 0; }));
}

void FrontDoor::accept_all() {
  for (std::size_t i = 0; i < waiting_most; ++i) {
    Descriptor client(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (client.get() < 0) {
      crowded_ = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED && !make_room();
      return;
    }
    const bool full = visits_.size() >= waiting_most + handed_on_most;
    if (full && !make_room()) continue;
    Visit& visit = visits_.emplace_back();
    visit.until = clock_.now() + asking_most;
    visit.client = std::move(client);
  }
}

/// The oldest goes of those that nothing is done for.
bool FrontDoor::make_room() {
  const auto oldest = std::ranges::find_if(visits_, [](const Visit& visit) {
    return visit.over || (visit.stage != Stage::answering && visit.pages.get() < 0);
  });
  if (oldest == visits_.end()) return false;
  visits_.erase(oldest);
  return true;
}

void FrontDoor::hear(Visit& visit) {
  std::array<char, 4096> bytes;
  const ssize_t n = ::recv(visit.client.get(), bytes.data(), bytes.size(), 0);
  if (not_yet(n)) return;
  if (n > 0) visit.said.append(bytes.data(), static_cast<std::size_t>(n));
  heard(visit, n <= 0);
}

/// `all`: nothing comes any more. What is no whole head then, or is too long for one, the server behind
/// answers as what it is.
void FrontDoor::heard(Visit& visit, bool all) {
  const bool whole = visit.said.find("\r\n\r\n") != std::string::npos;
  if (!whole && !all && visit.said.size() <= head_most) return;
  if (visit.said.empty()) {
    visit.over = true;
    return;
  }
  visit.until = clock_.now() + answering_most;
  const bool short_enough = visit.said.size() <= head_most;
  if (const auto probe = short_enough ? plain_probe(visit.said) : std::nullopt) {
    const PageAnswer answer = probe_(*probe);
    visit.answer = head_of(answer) + answer.body;
    visit.said.clear();
    visit.stage = Stage::answering;
    send_answer(visit);
  } else {
    visit.stage = Stage::waiting;
  }
}

/// In the order in which they came, as many as the server behind serves at once.
void FrontDoor::hand_on() {
  std::size_t handed = with_pages();
  for (Visit& visit : visits_) {
    if (visit.stage != Stage::waiting || handed == handed_on_most) continue;
    visit.pages = tcp_socket();
    const sockaddr_in to = address_of("127.0.0.1", pages_);
    const int done = ::connect(visit.pages.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to);
    visit.over = done != 0 && !not_yet(done);
    visit.stage = Stage::answering;
    ++handed;
  }
}

void FrontDoor::talk(Visit& visit) {
  if (!visit.said.empty()) {
    const ssize_t n = ::send(visit.pages.get(), visit.said.data(), visit.said.size(), MSG_NOSIGNAL);
    if (n > 0) visit.said.erase(0, static_cast<std::size_t>(n));
    if (n < 0 && !not_yet(n)) visit.said.clear();  // it has heard enough
    // No page depends on what comes behind a head.
    if (visit.said.empty()) ::shutdown(visit.pages.get(), SHUT_WR);
  }
  if (visit.pages.get() >= 0 && visit.answer.size() < held_most) {
    std::array<char, 16384> bytes;
    const ssize_t n = ::recv(visit.pages.get(), bytes.data(), bytes.size(), 0);
    if (n > 0) visit.answer.append(bytes.data(), static_cast<std::size_t>(n));
    if (n == 0 || (n < 0 && !not_yet(n))) visit.pages = Descriptor();
  }
  send_answer(visit);
}

void FrontDoor::send_answer(Visit& visit) {
  if (!visit.answer.empty()) {
    const ssize_t n = ::send(visit.client.get(), visit.answer.data(), visit.answer.size(), MSG_NOSIGNAL);
    if (n > 0) visit.answer.erase(0, static_cast<std::size_t>(n));
    if (n < 0 && !not_yet(n)) visit.over = true;
  }
  if (!visit.answer.empty() || visit.pages.get() >= 0) return;
  // What the client may still send is read before the connection is closed: it would take the answer with it.
  ::shutdown(visit.client.get(), SHUT_WR);
  visit.stage = Stage::leaving;
  visit.until = clock_.now() + leaving_most;
}

void FrontDoor::leave(Visit& visit) {
  std::array<char, 16384> bytes;
  const ssize_t n = ::recv(visit.client.get(), bytes.data(), bytes.size(), 0);
  visit.over = n == 0 || (n < 0 && !not_yet(n));
}

void FrontDoor::overdue(Visit& visit) {
  if (visit.stage == Stage::asking)
    heard(visit, true);
  else
    visit.over = true;
}

}  // namespace

Result<std::unique_ptr<Front>> Front::open(const Address& address) {
  const auto failed = [](int code) {
    return Error{ErrorCode::unavailable, std::generic_category().message(code)};
  };
  Descriptor listener = tcp_socket();
  if (listener.get() < 0) return failed(errno);
  const int on = 1;
  ::setsockopt(listener.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in at = address_of(address.host, address.port);
  socklen_t size = sizeof at;
  auto* const any = reinterpret_cast<sockaddr*>(&at);
  if (::bind(listener.get(), any, size) != 0 || ::listen(listener.get(), backlog) != 0 ||
      ::getsockname(listener.get(), any, &size) != 0)
    return failed(errno);
  return std::unique_ptr<Front>(std::make_unique<FrontDoor>(std::move(listener), ntohs(at.sin_port)));
}

}  // namespace rivulet::runtime
