#pragma once
#include <doctest/doctest.h>

#include "tests/conformance/transport_harness.h"

/// Requirements for every Transport. `Net` has connect(rank) and book(), and a static constexpr deadline of
/// about one second.
namespace rivulet::testing {

using sync::Lane;
using sync::Ticket;

inline std::uint64_t seed_of(std::uint32_t from, std::uint32_t to, std::uint64_t index) {
  return (from * 100 + to) * 100000 + index;
}

/// All ranks send `size` bytes to all others, with receives posted before or after the sends.
inline void exchange(Node& node, std::size_t size, bool receive_first, std::uint64_t index) {
  std::vector<std::vector<std::byte>> out(node.world()), in(node.world());
  std::vector<Ticket> tickets;
  const auto receive_all = [&] {
    for (std::uint32_t r = 0; r < node.world(); ++r) {
      if (r == node.rank()) continue;
      in[r].resize(size);
      tickets.push_back(node.transport.receive(r, Lane::payload, in[r]));
    }
  };
  if (receive_first) receive_all();
  for (std::uint32_t r = 0; r < node.world(); ++r) {
    if (r == node.rank()) continue;
    out[r] = pattern(size, seed_of(node.rank(), r, index));
    tickets.push_back(node.transport.send(r, Lane::payload, out[r]));
  }
  if (!receive_first) receive_all();
  for (const Ticket ticket : tickets) node.finish(ticket, std::to_string(size) + " bytes");
  for (std::uint32_t r = 0; r < node.world(); ++r) {
    if (r == node.rank()) continue;
    node.expect(in[r] == pattern(size, seed_of(r, node.rank(), index)),
                std::to_string(size) + " bytes are wrong");
  }
}

TEST_CASE_TEMPLATE_DEFINE("Transport: messages of every size arrive exactly", Net, transport_sizes) {
  for (const std::uint32_t world : {2U, 3U, 4U}) {
    Net net;
    const auto problems = play_group(net, world, [](Node& node) {
      std::uint64_t index = 0;
      for (const std::size_t size :
           {std::size_t{0}, std::size_t{1}, std::size_t{255}, std::size_t{256}, std::size_t{64} << 10,
            std::size_t{256} << 10, (std::size_t{256} << 10) + 1, std::size_t{5} << 20}) {
        exchange(node, size, true, ++index);
        exchange(node, size, false, ++index);
      }
    });
    CHECK_MESSAGE(problems.empty(), joined(problems));
  }
}

TEST_CASE_TEMPLATE_DEFINE("Transport: messages of a lane keep their order over many rounds", Net,
                          transport_order) {
  Net net;
  const auto problems = play_group(net, 3, [](Node& node) {
    constexpr std::size_t messages = 300;
    std::vector<std::uint64_t> out(messages * node.world()), in(messages * node.world());
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < messages; ++i) {
      for (std::uint32_t r = 0; r < node.world(); ++r) {
        if (r == node.rank()) continue;
        out[i * node.world() + r] = seed_of(node.rank(), r, i);
        tickets.push_back(
            node.transport.send(r, Lane::facts, std::as_bytes(std::span(&out[i * node.world() + r], 1))));
        tickets.push_back(node.transport.receive(
            r, Lane::facts, std::as_writable_bytes(std::span(&in[i * node.world() + r], 1))));
      }
    }
    for (const Ticket ticket : tickets) node.finish(ticket, "message");
    for (std::size_t i = 0; i < messages; ++i) {
      for (std::uint32_t r = 0; r < node.world(); ++r) {
        if (r != node.rank())
          node.expect(in[i * node.world() + r] == seed_of(r, node.rank(), i), "out of order");
      }
    }
  });
  CHECK_MESSAGE(problems.empty(), joined(problems));
}

/// A lane without a message, and a lane without a posted receive, do not block other lanes.
TEST_CASE_TEMPLATE_DEFINE("Transport: lanes do not wait for each other", Net, transport_lanes) {
  Net net;
  const auto problems = play_group(net, 2, [](Node& node) {
    const std::uint32_t peer = 1 - node.rank();
    const auto big = pattern(1 << 20, 1);
    std::vector<std::byte> big_in(big.size());
    std::array<std::byte, 8> word{}, answer{};
    if (node.rank() == 0) {
      const Ticket late = node.transport.send(peer, Lane::section, big);
      const Ticket later = node.transport.receive(peer, Lane::section, big_in);
      node.finish(node.transport.send(peer, Lane::payload, word), "a short send after a long one");
      node.finish(node.transport.receive(peer, Lane::payload, answer), "a short receive after a long one");
      node.finish(node.transport.send(peer, Lane::sum, word), "the go-ahead");
      node.finish(late, "the long send");
      node.finish(later, "the long receive");
    } else {
      node.finish(node.transport.receive(peer, Lane::payload, word), "a short receive");
      node.finish(node.transport.send(peer, Lane::payload, word), "a short send");
      node.finish(node.transport.receive(peer, Lane::sum, answer), "the go-ahead");
      const Ticket in = node.transport.receive(peer, Lane::section, big_in);
      node.finish(node.transport.send(peer, Lane::section, big), "the long send");
      node.finish(in, "the long receive");
    }
    node.expect(big_in == big, "the long message is wrong");
  });
  CHECK_MESSAGE(problems.empty(), joined(problems));
}

TEST_CASE_TEMPLATE_DEFINE(
    "Transport: a receive ahead stays open past the deadline and is seen when it is done", Net,
    transport_ahead) {
  Net net(Net::deadline);
  const auto problems = play_group(net, 2, [](Node& node) {
    const std::uint32_t peer = 1 - node.rank();
    std::array<std::byte, 256> facts{}, in{};
    const Ticket ahead = node.transport.receive_ahead(peer, Lane::facts, in);
    // Idle for longer than the deadline, then a round trip on another lane, then the message itself.
    node.expect(node.wait(ahead, Net::deadline + Net::deadline / 2) == Progress::pending,
                "nothing was sent yet");
    node.expect(node.transport.healthy(),
                "an open receive is not a failure: " + node.transport.error().message);
    std::array<std::byte, 8> word{};
    const Ticket ping = node.transport.receive(peer, Lane::phase, word);
    node.finish(node.transport.send(peer, Lane::phase, word), "ping");
    node.finish(ping, "pong");
    facts.fill(std::byte{42});
    const Ticket sent = node.transport.send(peer, Lane::facts, facts);
    const TimePoint before = node.clock.now();
    node.finish(ahead, "receive ahead without promote");
    node.expect(node.clock.now() - before < noticed_within(std::chrono::milliseconds(500)),
                "it was noticed late");
    node.expect(in == facts, "wrong bytes");
    node.finish(sent, "send");
  });
  CHECK_MESSAGE(problems.empty(), joined(problems));
}

TEST_CASE_TEMPLATE_DEFINE("Transport: a promoted receive runs into the deadline, which names the silent rank",
                          Net, transport_promote) {
  Net net(Net::deadline);
  const auto problems = play_group(
      net, 2,
      [](Node& node) {
        std::array<std::byte, 16> in{};
        if (node.rank() == 1) {  // silent, but connected
          node.wait([&] { return node.transport.healthy() ? Progress::pending : Progress::failed; });
          return;
        }
        const Ticket ahead = node.transport.receive_ahead(1, Lane::facts, in);
        node.expect(node.wait(ahead, Net::deadline) == Progress::pending, "ahead");
        const TimePoint promoted = node.clock.now();
        node.transport.promote(ahead);
        node.expect(node.wait(ahead) == Progress::failed, "a deadline was expected");
        const Duration took = node.clock.now() - promoted;
        node.expect(took >= Net::deadline && took < Net::deadline + noticed_within(std::chrono::seconds(1)),
                    "at the wrong time");
        node.expect(node.transport.error().code == ErrorCode::timed_out, node.transport.error().message);
        node.expect(node.transport.error().message.find("rank 1 (device-b)") != std::string::npos, "unnamed");
        node.expect(node.transport.lost_rank() == 1, "lost_rank");
        node.expect(!node.transport.healthy(), "a failed transport is not healthy");
      },
      false);
  CHECK_MESSAGE(problems.empty(), joined(problems));
}

TEST_CASE_TEMPLATE_DEFINE("Transport: a send ahead to a peer that comes later than the deadline loses nobody",
                          Net, transport_send_ahead) {
  Net net(Net::deadline);
  const auto problems = play_group(net, 2, [](Node& node) {
    const std::uint32_t peer = 1 - node.rank();
    std::vector<std::byte> copies(100'000, std::byte{42});
    std::array<std::byte, 8> word{};
    const Ticket asked = node.transport.receive_ahead(peer, Lane::facts, word);
    if (node.rank() == 0) {
      const Ticket sent = node.transport.send_ahead(1, Lane::rows, copies);
      static_cast<void>(node.wait(asked, Net::deadline + Net::deadline / 2));
      node.expect(node.transport.healthy(),
                  "a rank that is not due was lost: " + node.transport.error().message);
      node.finish(node.transport.send(1, Lane::facts, word), "now you are due");
      node.transport.promote(sent);
      node.finish(sent, "the send");
      node.finish(asked, "the answer");
      return;
    }
    // Posts its receive only after the request.
    node.finish(asked, "the call");
    std::vector<std::byte> in(copies.size());
    node.finish(node.transport.receive(0, Lane::rows, in), "the copies");
    node.expect(in == copies, "wrong bytes");
    node.finish(node.transport.send(0, Lane::facts, word), "the answer");
  });
  CHECK_MESSAGE(problems.empty(), joined(problems));
}

/// Only rank 0 waits for rank 2, which is silent; rank 1 does not communicate with it.
TEST_CASE_TEMPLATE_DEFINE("Transport: whom one rank lost is told to the others, and to the lost one", Net,
                          transport_last_words) {
  Net net(Net::deadline);
  const auto problems = play_group(
      net, 3,
      [](Node& node) {
        std::array<std::byte, 16> in{};
        if (node.rank() == 0) {
          node.expect(node.wait(node.transport.receive(2, Lane::facts, in)) == Progress::failed,
                      "no failure");
        } else {
          const auto look = [&] { return node.transport.healthy() ? Progress::pending : Progress::failed; };
          node.expect(node.wait(look) == Progress::failed, "no failure");
        }
        const std::string& message = node.transport.error().message;
        if (node.rank() == 2) {
          node.expect(message == "rank 0 (device-a) reported this device as lost" ||
                          message == "rank 1 (device-b) reported this device as lost",
                      message);
        } else {
          node.expect(node.transport.lost_rank() == 2, message);
          node.expect(node.transport.error().code == ErrorCode::timed_out, message);
        }
        if (node.rank() == 1)
          node.expect(message == "rank 2 (device-c) was lost, reported by rank 0 (device-a)", message);
      },
      false);
  CHECK_MESSAGE(problems.empty(), joined(problems));
}

TEST_CASE_TEMPLATE_DEFINE("Transport: a slow peer that keeps sending is not declared dead", Net,
                          transport_slow) {
  Net net(Net::deadline);
  constexpr std::size_t chunk = 256 * 1024;
  constexpr int chunks = 8;
  const auto problems = play_group(net, 2, [&](Node& node) {
    std::vector<std::byte> bytes(chunk * chunks);
    std::vector<Ticket> tickets;
    SleepWake pause;
    for (int i = 0; i < chunks; ++i) {
      const auto part = std::span(bytes).subspan(chunk * i, chunk);
      if (node.rank() == 0) {
        tickets.push_back(node.transport.receive(1, Lane::payload, part));
      } else {
        pause.sleep(std::chrono::milliseconds(200));
        tickets.push_back(node.transport.send(0, Lane::payload, part));
      }
    }
    for (const Ticket ticket : tickets) node.finish(ticket, "chunk");
  });
  CHECK_MESSAGE(problems.empty(), joined(problems));
}

TEST_CASE_TEMPLATE_DEFINE("Transport: a peer that closes without a goodbye is noticed by an idle one", Net,
                          transport_close) {
  Net net;
  const auto problems = play_group(
      net, 3,
      [](Node& node) {
        // Leaves after the others have connected to each other, too.
        std::array<std::array<std::byte, 8>, 2> hello{};
        if (node.rank() == 2) {
          for (const std::uint32_t rank : {0U, 1U})
            node.finish(node.transport.receive(rank, Lane::facts, hello[rank]), "a hello");
          return;
        }
        node.finish(node.transport.send(2, Lane::facts, hello[0]), "a hello");
        const TimePoint before = node.clock.now();
        const auto look = [&] { return node.transport.healthy() ? Progress::pending : Progress::failed; };
        node.expect(node.wait(look, std::chrono::seconds(5)) == Progress::failed, "nothing noticed");
        node.expect(node.clock.now() - before < noticed_within(std::chrono::seconds(1)), "noticed late");
        node.expect(node.transport.error().code == ErrorCode::peer_lost, node.transport.error().message);
        node.expect(node.transport.error().message.find("rank 2 (device-c)") != std::string::npos,
                    node.transport.error().message);
        node.expect(node.transport.lost_rank() == 2, "lost_rank");
        std::array<std::byte, 8> word{};
        const Ticket ticket = node.transport.send(1 - node.rank(), Lane::facts, word);
        node.expect(node.transport.poll(ticket) == Progress::failed, "a dead transport takes nothing");
      },
      false);
  CHECK_MESSAGE(problems.empty(), joined(problems));
}

TEST_CASE_TEMPLATE_DEFINE("Transport: one that has said goodbye may close while others still talk", Net,
                          transport_bye) {
  Net net;
  const auto problems = play_group(
      net, 3,
      [](Node& node) {
        std::array<std::byte, 8> word{}, in{};
        if (node.rank() == 2) {
          for (const std::uint32_t r : {0U, 1U})
            node.finish(node.transport.send(r, Lane::shutdown, word), "bye");
          for (const std::uint32_t r : {0U, 1U})
            node.finish(node.transport.receive(r, Lane::shutdown, in), "bye");
          return;
        }
        const std::uint32_t peer = 1 - node.rank();
        static_cast<void>(
            node.transport.receive_ahead(2, Lane::facts, word));  // never arrives, without consequences
        const Ticket heard = node.transport.receive(2, Lane::shutdown, in);
        node.finish(node.transport.send(2, Lane::shutdown, word), "bye");
        node.finish(heard, "bye");
        SleepWake pause;
        for (int i = 0; i < 10; ++i) {
          pause.sleep(std::chrono::milliseconds(20));
          const Ticket got = node.transport.receive(peer, Lane::phase, in);
          node.finish(node.transport.send(peer, Lane::phase, in), "still talking");
          node.finish(got, "still talking");
        }
        node.expect(node.transport.healthy(), node.transport.error().message);
        const Ticket last = node.transport.receive(peer, Lane::shutdown, in);
        node.finish(node.transport.send(peer, Lane::shutdown, word), "bye");
        node.finish(last, "bye");
      },
      false);
  CHECK_MESSAGE(problems.empty(), joined(problems));
}

TEST_CASE_TEMPLATE_DEFINE("Transport: counts bytes both ways and wakes its owner", Net, transport_counters) {
  Net net;
  const auto problems = play_group(net, 3, [](Node& node) {
    const auto before = node.wake.notified();
    exchange(node, 1000, true, 1);
    exchange(node, 300000, true, 2);
    const auto c = node.transport.counters();
    node.expect(c.bytes_sent == 2 * 301000 && c.bytes_received == 2 * 301000,
                std::to_string(c.bytes_sent) + " / " + std::to_string(c.bytes_received));
    std::array<std::byte, 8> word{}, in{};
    const Ticket got = node.transport.receive((node.rank() + 2) % 3, Lane::phase, in);
    const Ticket sent = node.transport.send((node.rank() + 1) % 3, Lane::phase, word);
    node.expect(node.wait(got) == Progress::done && node.wait(sent) == Progress::done,
                "not done without wait()");
    node.expect(node.wake.notified() > before, "no rank was woken");
  });
  CHECK_MESSAGE(problems.empty(), joined(problems));
}

TEST_CASE_TEMPLATE_DEFINE("Transport: views come and go, each under its own token", Net, transport_views) {
  Net net;
  for (std::uint64_t token = 1; token <= 5; ++token) {
    const auto problems =
        play_group(net, 2, [&](Node& node) { exchange(node, 1000, true, token); }, true, token);
    CHECK_MESSAGE(problems.empty(), joined(problems));
  }
}

#define RIVULET_TRANSPORT_SUITE(Net)                    \
  TEST_CASE_TEMPLATE_INVOKE(transport_sizes, Net);      \
  TEST_CASE_TEMPLATE_INVOKE(transport_order, Net);      \
  TEST_CASE_TEMPLATE_INVOKE(transport_lanes, Net);      \
  TEST_CASE_TEMPLATE_INVOKE(transport_ahead, Net);      \
  TEST_CASE_TEMPLATE_INVOKE(transport_promote, Net);    \
  TEST_CASE_TEMPLATE_INVOKE(transport_send_ahead, Net); \
  TEST_CASE_TEMPLATE_INVOKE(transport_last_words, Net); \
  TEST_CASE_TEMPLATE_INVOKE(transport_slow, Net);       \
  TEST_CASE_TEMPLATE_INVOKE(transport_close, Net);      \
  TEST_CASE_TEMPLATE_INVOKE(transport_bye, Net);        \
  TEST_CASE_TEMPLATE_INVOKE(transport_counters, Net);   \
  TEST_CASE_TEMPLATE_INVOKE(transport_views, Net)

}  // namespace rivulet::testing
