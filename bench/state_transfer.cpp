// Measures the transfer of a state of 10 MB to a device without one. Two network namespaces with a shaped
// link. Starts with a connected mesh: the donor computes the digest, encodes the image with its hashes and
// sends it with StateExchange over Gloo, as Worker does. Ends when the other device has decoded it and the
// digest matches. Compared, in turns, with the same bytes through a TCP socket over the same link. Needs
// root.
//   build/release/bench_state_transfer [REPETITIONS]
#include <array>
#include <cstdlib>
#include <thread>

#include "bench/measure.h"
#include "bench/sockets.h"
#include "core/check.h"
#include "core/clock.h"
#include "core/rng.h"
#include "devices/device.h"
#include "runtime/state/state_image.h"
#include "sync/collective/state_exchange.h"
#include "sync/transport/gloo_transport.h"
#include "tests/conformance/transport_harness.h"
#include "tests/support/network.h"

using namespace rivulet;
using namespace rivulet::bench;

namespace {

using testing::Network;

const runtime::StateOwner owner{"mlp", "", {}};

/// Runs one function in each of the two namespaces, at the same time.
template <class Donor, class Taker>
void in_both(const Network& network, Donor donor, Taker taker) {
  std::thread other([&] {
    enter_namespace(network.namespace_of(1));
    taker();
  });
  std::thread([&] {
    enter_namespace(network.namespace_of(0));
    donor();
  }).join();
  other.join();
}

runtime::AgreedState state_of(std::size_t parameters, devices::Device& device) {
  devices::ModelLayout layout;
  layout.parameters = parameters;
  runtime::AgreedState state{devices::ModelState::create(layout, device).value(), {1, 7}, 0, {}};
  Rng rng(1);
  for (const auto& array : {state.model.parameters(), state.model.optimizer_array(0)})
    for (float& number : array.as<float>()) number = static_cast<float>(rng.normal());
  return state;
}

/// One connected end of a view of two.
class End {
 public:
  End(const Network& network, std::uint32_t rank, std::uint64_t token, testing::FolderBook& book)
      : view_(testing::view_of(2, rank, token)) {
    view_.holders = {0};
    sync::GlooConfig config;
    config.bind = network.address_of(static_cast<int>(rank));
    auto connect = sync::make_gloo_connect(config, clock_).value();
    transport_ = connect(view_, book, wake_).value();
    wait([&] { return transport_->connected(); });
  }
  template <class Poll>
  void wait(const Poll& poll) {
    for (Progress p = poll(); p != Progress::done; p = poll()) {
      RIVULET_CHECK(p == Progress::pending, "the transfer failed");
      wake_.sleep(std::chrono::milliseconds(2));  // Worker's polling interval
    }
  }
  std::unique_ptr<sync::StateExchange> exchange(std::size_t bytes_max) {
    return std::make_unique<sync::StateExchange>(*transport_, view_, bytes_max,
                                                 clock_.now() + std::chrono::seconds(60));
  }

 private:
  RealClock clock_;
  testing::SleepWake wake_;
  sync::ViewSpec view_;
  std::unique_ptr<sync::Transport> transport_;
};

/// Waits for both ends, then starts the clock.
class Starter {
 public:
  TimePoint together() {
    ++arrived_;
    while (arrived_ < 2) std::this_thread::yield();
    return RealClock().now();
  }

 private:
  std::atomic<int> arrived_{0};
};

double state_seconds(const Network& network, const runtime::AgreedState& state, std::uint64_t token) {
  const testing::TempDir folder;
  testing::FolderBook book(folder.path());
  const auto device = devices::make_host_device();
  const auto& layout = state.model.layout();
  const std::size_t most = runtime::state_image_max(layout);
  Starter starter;
  TimePoint began;
  TimePoint ended;
  const auto finish = [](End& end, sync::StateExchange& exchange) {
    exchange.confirm();
    end.wait([&] { return exchange.poll(RealClock().now()); });
  };
  in_both(
      network,
      [&] {
        End end(network, 0, token, book);
        const auto exchange = end.exchange(most);
        starter.together();
        const auto donor = devices::make_host_device();
        const Digest digest = runtime::digest_of(state, *donor).value();
        exchange->give(runtime::encode_state(owner, state, digest));
        finish(end, *exchange);
      },
      [&] {
        End end(network, 1, token, book);
        const auto exchange = end.exchange(most);
        began = starter.together();
        exchange->take();
        end.wait([&] { return exchange->poll(RealClock().now()); });
        const auto taken = runtime::decode_state(exchange->taken(), {owner, layout, *device});
        RIVULET_CHECK(runtime::digest_of(taken.value().state, *device).value() == taken.value().digest,
                      "the received state differs from the sent one");
        ended = RealClock().now();
        finish(end, *exchange);
      });
  return to_seconds(ended - began);
}

/// Sends the bytes from the donor to the listening taker. Returns the seconds.
double socket_seconds(const Network& network, std::size_t bytes) {
  const std::vector<std::byte> out = testing::pattern(bytes, 1);
  std::vector<std::byte> in(bytes);
  std::atomic<int> port{0};
  Starter starter;
  TimePoint began;
  TimePoint ended;
  in_both(
      network,
      [&] {
        while (port == 0) std::this_thread::yield();
        const Socket socket = dial(network.address_of(1), static_cast<std::uint16_t>(port.load()));
        starter.together();
        send_all(socket, out);
        std::byte last{};
        RIVULET_CHECK(::recv(socket.fd(), &last, 1, 0) == 0, "the taker did not close the connection");
      },
      [&] {
        const Listener listener = listen_on(network.address_of(1));
        port = listener.port;
        const Socket socket = accept_from(listener);
        began = starter.together();
        for (std::size_t got = 0; got < bytes;) got += receive_some(socket, std::span(in).subspan(got));
        ended = RealClock().now();
      });
  RIVULET_CHECK(in == out, "the received bytes differ");
  return to_seconds(ended - began);
}

void measure(double bits_per_second, int repetitions) {
  auto made = Network::create({.nodes = 2, .bits_per_second = bits_per_second});
  if (!made) fmt::print(stderr, "{}\n", made.error().message);
  const Network& network = *made.value();
  const auto device = devices::make_host_device();
  const auto state = state_of(1'250'000, *device);
  const Digest digest = runtime::digest_of(state, *device).value();
  const std::size_t bytes = runtime::encode_state(owner, state, digest).size();
  std::vector<double> ours;
  std::vector<double> plain;
  std::vector<double> share;
  for (int i = 0; i < repetitions; ++i) {
    ours.push_back(state_seconds(network, state, static_cast<std::uint64_t>(i) + 1));
    plain.push_back(socket_seconds(network, bytes));
    share.push_back(plain.back() / ours.back());
  }
  fmt::print(
      "{:.0f} Mbit/s, {:.1f} MB: state {:.3f} s, socket {:.3f} s, link alone {:.3f} s, rate vs. socket "
      "{}\n",
      bits_per_second / 1e6, static_cast<double>(bytes) / 1e6, percentile(ours, 0.5), percentile(plain, 0.5),
      8 * static_cast<double>(bytes) / bits_per_second, spread(share, ""));
}

}  // namespace

int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 7;
  for (const double rate : {60e6, 100e6}) measure(rate, repetitions);
  return 0;
}
