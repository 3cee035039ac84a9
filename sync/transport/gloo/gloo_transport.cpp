#include "sync/transport/gloo_transport.h"

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sync/transport/gloo/address_towards.h"
#include "sync/transport/gloo/bind_address.h"
#include "sync/transport/gloo/endpoint.h"
#include "sync/transport/gloo/peer_door.h"
#include "sync/transport/gloo/quiet_stdout.h"

namespace rivulet::sync {
namespace gloo_door {
namespace {

/// A group of one: no peers, no messages.
class LoneTransport final : public Transport {
 public:
  std::uint32_t rank() const noexcept override { return 0; }
  std::uint32_t world() const noexcept override { return 1; }
  Progress connected() override { return Progress::done; }
  Ticket send(std::uint32_t, Lane, std::span<const std::byte>) override { return nobody(); }
  Ticket receive(std::uint32_t, Lane, std::span<std::byte>) override { return nobody(); }
  Ticket receive_ahead(std::uint32_t, Lane, std::span<std::byte>) override { return nobody(); }
  Ticket send_ahead(std::uint32_t, Lane, std::span<const std::byte>) override { return nobody(); }
  void promote(Ticket) override {}
  Progress poll(Ticket) override { return Progress::done; }
  bool healthy() override { return true; }
  const Error& error() const override { return error_; }
  int lost_rank() const noexcept override { return -1; }
  TransportCounters counters() const noexcept override { return {}; }

 private:
  static Ticket nobody() {
    RIVULET_CHECK(false, "a message needs another rank");
    return {};
  }
  Error error_;
};

}  // namespace
}  // namespace gloo_door

namespace {

constexpr std::string_view automatic = "auto";
constexpr Duration name_server_patience = std::chrono::seconds(5);
constexpr Duration view_patience = std::chrono::milliseconds(500);  // on a thread that the watchdog monitors

bool follows_brokers(const GlooConfig& config) {
  return config.bind == automatic;
}

/// The address that peers dial. It may change between views: an interface gets a new address, a network comes
/// up late.
class BoundAddress {
 public:
  explicit BoundAddress(const GlooConfig& config) : bind_(config.bind), towards_(config.towards) {
    if (follows_brokers(config)) towards_.resolve();
  }
  Result<std::string> find(Duration patience) {
    return bind_ == automatic ? towards_.find(patience) : gloo_door::local_address(bind_);
  }

 private:
  const std::string bind_;
  gloo_door::AddressTowards towards_;
};

/// Fails if the port is taken, before the device reads. A network that is not up yet is not an error.
Status check_door(const GlooConfig& config, BoundAddress& bound) {
  if (follows_brokers(config) && config.port == 0) return ok();
  const auto local = bound.find(name_server_patience);
  if (!local) return follows_brokers(config) ? ok() : Status(local.error());
  const auto door = gloo_door::PeerDoor::open(local.value(), config.port, config.connect_deadline);
  return door ? ok() : Status(door.error());
}

}  // namespace

Result<std::string> local_peer_address(const GlooConfig& config) {
  return BoundAddress(config).find(name_server_patience);
}

Result<Connect> make_gloo_connect(GlooConfig config, const Clock& clock) {
  auto bound = std::make_shared<BoundAddress>(config);
  if (auto free = check_door(config, *bound); !free) return free.error();
  if (!config.advertise.empty()) {
    if (auto checked = gloo_door::check_advertised(config.advertise); !checked) return checked.error();
  }
  // Gloo writes to sockets without MSG_NOSIGNAL: a write to a dead peer would kill this process.
  std::signal(SIGPIPE, SIG_IGN);
  gloo_door::QuietStdout::install();
  return Connect([config, &clock, bound](const ViewSpec& view, AddressBook& book,
                                         Wake& wake) -> Result<std::unique_ptr<Transport>> {
    RIVULET_CHECK(view.rank < view.world(), "own rank is not in the view");
    if (view.world() == 1) return std::unique_ptr<Transport>(std::make_unique<gloo_door::LoneTransport>());
    auto address = bound->find(view_patience);
    if (!address) return address.error();
    gloo_door::ConnectRequest request{std::move(address).value(),
                                      config.advertise,
                                      config.port,
                                      connect_deadline_of(config, view.world()),
                                      &clock,
                                      view,
                                      &book,
                                      nullptr};
    return std::unique_ptr<Transport>(
        std::make_unique<gloo_door::GlooEndpoint>(config, clock, std::move(request), wake));
  });
}

}  // namespace rivulet::sync
