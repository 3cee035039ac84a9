#include "sync/transport/gloo/gloo_pair.h"

#include <dlfcn.h>
#include <gloo/transport/tcp/pair.h>
#include <gloo/transport/tcp/socket.h>
#include <netinet/in.h>

#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "sync/transport/gloo/links.h"

namespace rivulet::sync::gloo_door {
namespace {

namespace tcp = ::gloo::transport::tcp;
using Milliseconds = std::chrono::milliseconds;
using Buffer = ::gloo::NonOwningPtr<tcp::UnboundBuffer>;

/// LibTorch's own functions, found by name so that the program also loads with a LibTorch that lacks one.
struct Theirs {
  bool (*read)(tcp::Pair*) = nullptr;
  ssize_t (*prepare_read)(tcp::Pair*, tcp::Op&, Buffer&, iovec&) = nullptr;
  void (*signal)(tcp::Pair*, std::exception_ptr) = nullptr;
  void (*signal_text)(tcp::Pair*, const std::string&) = nullptr;
  bool (*is_connected)(tcp::Pair*) = nullptr;
  bool (*is_initiator)(const tcp::Device*, const tcp::Address&, const tcp::Address&) = nullptr;
  void (*listen)(tcp::Device*, const tcp::Address&, Milliseconds, tcp::Device::connect_callback_t) = nullptr;
  std::vector<char> (*bytes)(const tcp::Address*) = nullptr;
  const tcp::Error* success = nullptr;
  std::string missing;

  Theirs() {
    find(read, "Pair4readEv");
    find(prepare_read, "Pair11prepareReadERNS1_2OpERNS_12NonOwningPtrINS1_13UnboundBufferEEER5iovec");
    find(signal, "Pair15signalExceptionENSt15__exception_ptr13exception_ptrE");
    find(signal_text, "Pair15signalExceptionERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");
    find(is_connected, "Pair11isConnectedEv");
    find(is_initiator, "Device11isInitiatorERKNS1_7AddressES5_", "K");
    find(listen,
         "Device17connectAsListenerERKNS1_7AddressENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE"
         "St8functionIFvSt10shared_ptrINS1_6SocketEERKNS1_5ErrorEEE");
    find(bytes, "Address5bytesEv", "K");
    find(success, "Error8kSuccessE");
  }
  template <class T>
  void find(T*& at, const std::string& name, const std::string& qualifier = "") {
    const std::string symbol = "_ZN" + qualifier + "4gloo9transport3tcp" + mangled(name);
    at = reinterpret_cast<T*>(dlsym(RTLD_NEXT, symbol.c_str()));
    if (at == nullptr) missing += (missing.empty() ? "" : ", ") + symbol;
  }
  /// Adds the length of the first word, which the names above omit.
  static std::string mangled(const std::string& name) {
    const std::size_t end = name.find_first_of("0123456789");
    return std::to_string(end) + name;
  }
};

const Theirs& theirs() {
  static const Theirs all;
  return all;
}

constexpr const char* unawaited = "a message without a posted receive";

/// Thrown through Gloo, which has no other way to abort a read.
struct Refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Returns false if the pair was closed before, with the thrown error.
bool close_pair(tcp::Pair* pair, const std::string& why) {
  try {
    theirs().signal_text(pair, why);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

std::string words_of(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& e) {
    return plain(e.what());
  } catch (...) {
    return "an unknown error";
  }
}

}  // namespace

std::string missing_in_gloo() {
  return theirs().missing;
}

std::string plain(const char* text) {
  std::string line(text);
  line = line.substr(0, line.find('\n'));
  if (const auto end = line.find("] "); line.starts_with("[/") && end != std::string::npos)
    line.erase(0, end + 2);
  return line.substr(0, line.find(". "));
}

bool is_connected(tcp::Pair& pair) {
  return theirs().is_connected(&pair);
}

}  // namespace rivulet::sync::gloo_door

namespace gloo::transport::tcp {

using namespace rivulet::sync::gloo_door;

/// An exception here would end the process: Gloo's loop thread does not catch it.
bool Pair::read() {
  std::string why = unawaited;
  try {
    const bool whole = theirs().read(this);
    if (whole) Links::ended(this);
    return whole;
  } catch (const Refused& e) {
    why = e.what();
  } catch (const std::exception&) {
  }
  if (close_pair(this, why)) Links::refused(this, why);
  return false;
}

ssize_t Pair::prepareRead(Op& op, NonOwningPtr<UnboundBuffer>& buffer, iovec& into) {
  const bool new_one = op.bytes_read == sizeof(Preamble) && op.receiver[1] == nullptr;
  if (new_one)
    if (const char* why = Links::refuse(this, op.preamble)) throw Refused(why);
  ssize_t wanted = 0;
  try {
    wanted = theirs().prepare_read(this, op, buffer, into);
  } catch (const std::exception&) {
    throw Refused(op.receiver[1] == nullptr ? unawaited : "a message longer than expected");
  }
  if (new_one && op.preamble.opcode == Preamble::message)
    if (const char* why = FrameCheck::refuse_length(op.preamble, op.awaited)) throw Refused(why);
  return wanted;
}

void Pair::signalException(std::exception_ptr error) {
  Links::broken(this, words_of(error));
  theirs().signal(this, std::move(error));
}

/// Does not wait: the caller waits for all pairs together, later.
void Pair::waitUntilConnected(std::unique_lock<std::mutex>& /*lock*/, bool /*use_timeout*/) {
  const auto links = Links::connecting();
  if (links == nullptr) throw std::logic_error("a Gloo pair outside a view");
  links->expect(this);
}

void Device::connect(const Address& local, const Address& remote, int /*rank*/, int /*size*/,
                     std::chrono::milliseconds timeout, connect_callback_t connected) {
  auto links = Links::connecting();
  if (links == nullptr) throw std::logic_error("a Gloo device outside a view");
  try {
    if (!theirs().is_initiator(this, local, remote)) {
      theirs().listen(this, local, timeout,
                      [links, connected](std::shared_ptr<Socket> socket, const Error& error) {
                        links->hand_over([&] { connected(std::move(socket), error); });
                      });
      return;
    }
    const std::vector<char> bytes = theirs().bytes(&remote);
    sockaddr_storage to{};
    std::int64_t number = 0;
    if (bytes.size() < sizeof to + sizeof number) throw std::runtime_error("an address of an unknown layout");
    std::memcpy(&to, bytes.data(), sizeof to);
    std::memcpy(&number, bytes.data() + sizeof to, sizeof number);
    links->dial(to, number, [&l = *links, connected](int fd) {
      auto socket = std::make_shared<Socket>(fd);
      l.hand_over([&] { connected(std::move(socket), *theirs().success); });
    });
  } catch (...) {
    links->abandon();
    throw;
  }
}

}  // namespace gloo::transport::tcp
