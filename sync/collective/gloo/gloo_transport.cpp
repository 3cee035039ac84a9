#include "sync/collective/gloo_transport.h"

#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <vector>

#include "sync/collective/gloo/bind_address.h"
#include "sync/collective/gloo/endpoint.h"
#include "sync/collective/gloo/peer_door.h"
#include "sync/collective/gloo/quiet_stdout.h"

namespace rivulet::sync {
namespace gloo_door {
namespace {

/// A group of one: nobody to talk to, nothing to wait for.
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

bool follows_brokers(const GlooConfig& config) {
  return config.bind == "auto";
}

/// Where peers dial, which may be another address in each view: an interface gets a new one, a network comes
/// up late.
class BoundAddress {
 public:
  Result<std::string> find(const GlooConfig& config) {
    if (!follows_brokers(config)) return gloo_door::local_address(config.bind);
    if (auto known = gloo_door::local_address_towards(addresses_)) return known;
    addresses_ = gloo_door::numeric_addresses(config.towards(), name_server_patience);
    return gloo_door::local_address_towards(addresses_);
  }

 private:
  static constexpr Duration name_server_patience = std::chrono::seconds(3);
  std::vector<std::string> addresses_;  ///< of the brokers; names are looked up once
};

/// A port that is taken ends a device before it reads; a network that is not up yet does not.
Status check_door(const GlooConfig& config) {
  if (follows_brokers(config) && config.port == 0) return ok();
  const auto local = BoundAddress().find(config);
  if (!local) return follows_brokers(config) ? ok() : Status(local.error());
  const auto door = gloo_door::PeerDoor::open(local.value(), config.port);
  return door ? ok() : Status(door.error());
}

}  // namespace

Result<std::string> local_peer_address(const GlooConfig& config) {
  return BoundAddress().find(config);
}

Result<Connect> make_gloo_connect(GlooConfig config, const Clock& clock) {
  if (auto free = check_door(config); !free) return free.error();
  if (!config.advertise.empty()) {
    if (auto checked = gloo_door::check_advertised(config.advertise); !checked) return checked.error();
  }
  // Gloo writes to sockets without MSG_NOSIGNAL: a peer that died would end this process too.
  std::signal(SIGPIPE, SIG_IGN);
  gloo_door::QuietStdout::install();
  return Connect(
      [config, &clock, bound = std::make_shared<BoundAddress>()](
          const ViewSpec& view, AddressBook& book, Wake& wake) -> Result<std::unique_ptr<Transport>> {
        RIVULET_CHECK(view.rank < view.world(), "own rank is not in the view");
        if (view.world() == 1)
          return std::unique_ptr<Transport>(std::make_unique<gloo_door::LoneTransport>());
        auto address = bound->find(config);
        if (!address) return address.error();
        gloo_door::ConnectRequest request{std::move(address).value(),
                                          config.advertise,
                                          config.port,
                                          config.connect_deadline,
                                          &clock,
                                          view,
                                          &book,
                                          nullptr};
        return std::unique_ptr<Transport>(
            std::make_unique<gloo_door::GlooEndpoint>(config, clock, std::move(request), wake));
      });
}

}  // namespace rivulet::sync
