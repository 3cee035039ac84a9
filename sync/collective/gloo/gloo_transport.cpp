#include "sync/collective/gloo_transport.h"

#include <csignal>

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

Result<std::string> bound_address(const GlooConfig& config) {
  return config.bind == "auto" ? gloo_door::local_address_towards(config.towards)
                               : gloo_door::local_address(config.bind);
}

}  // namespace

Result<std::string> local_peer_address(GlooConfig config) {
  if (config.bind == "auto") config.towards = gloo_door::numeric_addresses(config.towards);
  return bound_address(config);
}

Result<Connect> make_gloo_connect(GlooConfig config, const Clock& clock) {
  if (config.bind == "auto") config.towards = gloo_door::numeric_addresses(config.towards);
  const auto local = bound_address(config);
  if (!local) return local.error();
  if (auto door = gloo_door::PeerDoor::open(local.value(), config.port); !door) return door.error();
  if (!config.advertise.empty()) {
    if (auto checked = gloo_door::check_advertised(config.advertise); !checked) return checked.error();
  }
  // Gloo writes to sockets without MSG_NOSIGNAL: a peer that died would end this process too.
  std::signal(SIGPIPE, SIG_IGN);
  gloo_door::QuietStdout::install();
  return Connect([config, &clock](const ViewSpec& view, AddressBook& book,
                                  Wake& wake) -> Result<std::unique_ptr<Transport>> {
    RIVULET_CHECK(view.rank < view.world(), "own rank is not in the view");
    if (view.world() == 1) return std::unique_ptr<Transport>(std::make_unique<gloo_door::LoneTransport>());
    // Looked up again for each view: an interface may have got another address.
    auto address = bound_address(config);
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
