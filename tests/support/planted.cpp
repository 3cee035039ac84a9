#include "tests/support/planted.h"

#include <alloca.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "tests/support/wrapped_transport.h"

namespace rivulet::testing {
namespace {

[[gnu::noinline]] void plant_stack() {
  constexpr std::size_t bytes = 128 * 1024;
  void* const below = alloca(bytes);
  std::memset(below, std::to_integer<int>(planted), bytes);
  asm volatile("" : : "r"(below) : "memory");  // keeps the unread write
}

/// Blocks of common sizes, which later allocations reuse.
[[gnu::noinline]] void plant_heap() {
  for (std::size_t size = 24; size <= 16 * 1024; size += size / 4) {
    std::array<void*, 4> blocks{};
    for (void*& block : blocks) {
      block = std::malloc(size);
      if (block != nullptr) std::memset(block, std::to_integer<int>(planted), size);
      asm volatile("" : : "r"(block) : "memory");
    }
    for (void* block : blocks) std::free(block);
  }
}

/// An IPv4 address needs 8 bytes; the other 120 of its sockaddr_storage must be 0. The library leaves stack
/// contents of deeper calls there, which planting does not reach.
bool has_unset_address(std::span<const std::byte> value) {
  std::uint64_t host = 0;
  if (value.size() < sizeof host) return true;
  std::memcpy(&host, value.data(), sizeof host);
  const std::size_t at =
      2 * sizeof(std::uint64_t) + host + sizeof(sockaddr_in) - sizeof(sockaddr_in::sin_zero);
  const std::size_t end = 2 * sizeof(std::uint64_t) + host + sizeof(sockaddr_storage);
  if (host > 1024 || value.size() < end) return true;
  return std::ranges::any_of(value.subspan(at, end - at), [](std::byte b) { return b != std::byte{0}; });
}

class WatchedBook final : public sync::AddressBook {
 public:
  WatchedBook(sync::AddressBook& book, PlantedFinds& finds) : book_(book), finds_(finds) {}
  Status set(std::uint64_t token, const std::string& key, std::span<const std::byte> value) override {
    finds_.look_at("address " + key, value);
    if (has_unset_address(value)) finds_.add("address " + key + ": uninitialized bytes");
    return book_.set(token, key, value);
  }
  std::vector<std::byte> get(std::uint64_t token, const std::string& key, bool& found) override {
    plant();
    return book_.get(token, key, found);
  }

 private:
  sync::AddressBook& book_;
  PlantedFinds& finds_;
};

class WatchedTransport final : public WrappedTransport {
 public:
  WatchedTransport(std::unique_ptr<WatchedBook> book, std::unique_ptr<sync::Transport> transport,
                   PlantedFinds& finds)
      : WrappedTransport(nullptr), book_(std::move(book)), finds_(finds) {
    inner = std::move(transport);
  }
  ~WatchedTransport() override { inner.reset(); }  // before the address book that it uses
  sync::Ticket send(std::uint32_t peer, sync::Lane lane, std::span<const std::byte> bytes) override {
    finds_.look_at("a message on lane " + std::to_string(static_cast<int>(lane)), bytes);
    plant();
    return inner->send(peer, lane, bytes);
  }

 private:
  std::unique_ptr<WatchedBook> book_;
  PlantedFinds& finds_;
};

}  // namespace

void plant() {
  plant_stack();
  plant_heap();
}

void plant_in_threads() {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back(plant);
  for (auto& thread : threads) thread.join();
}

bool is_planted(std::span<const std::byte> bytes) {
  std::size_t run = 0;
  return std::ranges::any_of(bytes, [&](std::byte b) {
    run = b == planted ? run + 1 : 0;
    return run == planted_run;
  });
}

void PlantedFinds::look_at(const std::string& what, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  ++looked_at_;
  if (is_planted(bytes)) found_.push_back(what + ", " + std::to_string(bytes.size()) + " bytes");
}

void PlantedFinds::add(std::string what) {
  const std::lock_guard lock(mutex_);
  found_.push_back(std::move(what));
}

std::vector<std::string> PlantedFinds::found() const {
  const std::lock_guard lock(mutex_);
  return found_;
}

std::size_t PlantedFinds::looked_at() const {
  const std::lock_guard lock(mutex_);
  return looked_at_;
}

sync::Connect look_for_planted(sync::Connect usual, PlantedFinds& finds) {
  return [usual = std::move(usual), &finds](const sync::ViewSpec& spec, sync::AddressBook& book,
                                            Wake& wake) -> Result<std::unique_ptr<sync::Transport>> {
    plant();
    plant_in_threads();
    auto watched = std::make_unique<WatchedBook>(book, finds);
    auto transport = usual(spec, *watched, wake);
    if (!transport) return transport.error();
    return std::unique_ptr<sync::Transport>(
        std::make_unique<WatchedTransport>(std::move(watched), std::move(transport).value(), finds));
  };
}

}  // namespace rivulet::testing
