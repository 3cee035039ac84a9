#include "sync/transport/gloo/address_towards.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>

#include "sync/transport/gloo/bind_address.h"

namespace rivulet::sync::gloo_door {
namespace {

std::vector<std::string> numeric_addresses(const std::string& host, int flags) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_DGRAM;
  hints.ai_flags = flags;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, &freeaddrinfo);
  std::vector<std::string> v4;
  std::vector<std::string> v6;
  for (const addrinfo* i = list; i != nullptr; i = i->ai_next)
    (i->ai_family == AF_INET ? v4 : v6).push_back(numeric(i->ai_addr, i->ai_addrlen));
  v4.insert(v4.end(), v6.begin(), v6.end());
  return v4;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace

struct AddressTowards::Answers {
  std::mutex mutex;
  std::condition_variable news;
  std::vector<std::string> addresses;  ///< numeric addresses of the hosts
  bool complete = false;

  void add(std::vector<std::string> more) {
    const std::scoped_lock lock(mutex);
    addresses.insert(addresses.end(), more.begin(), more.end());
    news.notify_one();
  }
  void end() {
    const std::scoped_lock lock(mutex);
    complete = true;
    news.notify_one();
  }
  /// Adds numeric hosts, which need no name server, before names.
  void look_up(const std::vector<std::string>& hosts) {
    for (const std::string& host : hosts) add(numeric_addresses(host, AI_NUMERICHOST));
    for (const std::string& host : hosts)
      if (numeric_addresses(host, AI_NUMERICHOST).empty()) add(numeric_addresses(host, 0));
    end();
  }
  /// Returns a loopback address only when no more answers can come.
  [[nodiscard]] std::string local() const {
    const auto towards = local_address_towards(addresses);
    if (complete || (!towards.empty() && !is_loopback(towards))) return towards;
    return {};
  }
  /// Puts addresses of other machines first.
  void sort() {
    std::ranges::stable_partition(addresses, [](const auto& address) {
      const auto local = local_address_towards(std::span(&address, 1));
      return !local.empty() && !is_loopback(local);
    });
  }
};

AddressTowards::AddressTowards(Hosts hosts) : hosts_(std::move(hosts)) {}

AddressTowards::~AddressTowards() {
  if (question_.joinable()) question_.join();
}

// getaddrinfo() cannot be cancelled, and takes as long as resolv.conf allows for each server. So it runs on a
// detached thread.
void AddressTowards::resolve() {
  if (answers_) return;
  answers_ = std::make_shared<Answers>();
  if (question_.joinable()) question_.join();
  try {
    question_ = std::thread([answers = answers_, hosts = hosts_] {
      try {
        std::thread([answers, all = hosts()] { answers->look_up(all); }).detach();
      } catch (const std::system_error&) {
        answers->end();
      }
    });
  } catch (const std::system_error&) {  // no thread available: the next call tries again
    answers_->end();
  }
}

Result<std::string> AddressTowards::find(Duration patience) {
  resolve();
  std::unique_lock lock(answers_->mutex);
  std::string found;
  answers_->news.wait_for(lock, patience, [&] {
    answers_->sort();
    found = answers_->local();
    return !found.empty() || answers_->complete;
  });
  if (!found.empty()) return found;
  const bool complete = answers_->complete;
  lock.unlock();
  if (complete) answers_.reset();
  return Error{
      ErrorCode::unavailable,
      "sync.bind = \"auto\": this machine has no route to the brokers, so peers have no address to dial; "
      "check the brokers' names and the network, or set sync.bind to an interface name such as eth0"};
}

}  // namespace rivulet::sync::gloo_door
