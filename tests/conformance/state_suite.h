#pragma once
#include <doctest/doctest.h>

#include "sync/collective/state_exchange.h"
#include "tests/conformance/transport_harness.h"

/// Transfer of a view's state to ranks that lack it, over every Transport.
namespace rivulet::testing {

inline sync::ViewSpec held_by(Node& node, std::vector<std::uint32_t> holders) {
  auto view = view_of(node.world(), node.rank());
  view.holders = std::move(holders);
  return view;
}

TEST_CASE_TEMPLATE_DEFINE(
    "State exchange: a device that lacks the state has its very bytes before anybody goes on", Net,
    state_arrives) {
  for (const std::size_t size :
       {std::size_t{1}, std::size_t{1000}, std::size_t{1} << 20U, (std::size_t{5} << 20U) + 3}) {
    for (const std::vector<std::uint32_t>& holders :
         {std::vector<std::uint32_t>{0, 1, 2, 3}, {2}, {1, 3}, {0, 1, 2}}) {
      CAPTURE(size);
      CAPTURE(holders.size());
      Net net;
      std::atomic<std::uint32_t> have{0};
      const auto state = pattern(size, 99);
      const auto problems = play_group(net, 4, [&](Node& node) {
        const auto view = held_by(node, holders);
        sync::StateExchange exchange(node.transport, view, size, node.clock.now() + std::chrono::seconds(30));
        const auto poll = [&] { return exchange.poll(node.clock.now()); };
        if (exchange.has_state()) {
          if (exchange.gives()) exchange.give(state);
        } else {
          exchange.take();
          if (!node.expect(node.wait(poll) == Progress::done, "nothing came: " + exchange.error().message))
            return;
          const auto taken = exchange.taken();
          node.expect(std::equal(taken.begin(), taken.end(), state.begin(), state.end()),
                      "other bytes arrived");
        }
        ++have;
        exchange.confirm();
        node.expect(node.wait(poll) == Progress::done, "not settled: " + exchange.error().message);
        node.expect(have == 4, "confirmed before all ranks had it");
      });
      CHECK_MESSAGE(problems.empty(), joined(problems));
    }
  }
}

TEST_CASE_TEMPLATE_DEFINE("State exchange: a state that is too long is refused and named", Net,
                          state_too_long) {
  Net net;
  const auto problems = play_group(
      net, 2,
      [&](Node& node) {
        const auto view = held_by(node, {0});
        sync::StateExchange exchange(node.transport, view, 100, node.clock.now() + std::chrono::seconds(30));
        if (exchange.has_state()) {
          exchange.give(pattern(101, 1));
          exchange.confirm();
          // The peer has closed its endpoint: the exchange must fail, too.
          node.expect(node.wait([&] { return exchange.poll(node.clock.now()); }) == Progress::failed,
                      "a donor without receivers continued");
          node.transport.close();
          return;
        }
        exchange.take();
        node.expect(node.wait([&] { return exchange.poll(node.clock.now()); }) == Progress::failed,
                    "it was taken");
        node.expect(exchange.error().code == ErrorCode::protocol, "another error");
        node.expect(exchange.error().message ==
                        "the state from rank 0 (device-a) has 101 bytes, at most 100 are allowed",
                    exchange.error().message);
        node.transport.close();
      },
      false);
  CHECK_MESSAGE(problems.empty(), joined(problems));
}

TEST_CASE_TEMPLATE_DEFINE("State exchange: it ends at its time when somebody never settles", Net,
                          state_in_time) {
  Net net;
  const auto problems = play_group(
      net, 2,
      [&](Node& node) {
        const auto view = held_by(node, {0, 1});
        sync::StateExchange exchange(node.transport, view, 100,
                                     node.clock.now() + std::chrono::milliseconds(300));
        if (node.rank() == 1) {
          std::this_thread::sleep_for(std::chrono::milliseconds(600));
          return node.transport.close();
        }
        exchange.confirm();
        node.expect(node.wait([&] { return exchange.poll(node.clock.now()); }) == Progress::failed,
                    "it settled");
        node.expect(exchange.error().code == ErrorCode::timed_out, exchange.error().message);
        node.transport.close();
      },
      false);
  CHECK_MESSAGE(problems.empty(), joined(problems));
}

#define RIVULET_STATE_SUITE(Net)                  \
  TEST_CASE_TEMPLATE_INVOKE(state_arrives, Net);  \
  TEST_CASE_TEMPLATE_INVOKE(state_too_long, Net); \
  TEST_CASE_TEMPLATE_INVOKE(state_in_time, Net)

}  // namespace rivulet::testing
