#include <doctest/doctest.h>

#include <algorithm>

#include <array>

#include "core/clock.h"
#include "sync/transport/memory_transport.h"
#include "tests/support/memory_ranks.h"

namespace {

using namespace rivulet;
using namespace std::chrono_literals;
using sync::Lane;
using sync::Ticket;
using testing::at;
using testing::connect_all;
using testing::Ranks;

TEST_CASE("Memory network: the group stands when the last one has come, and not before") {
  Ranks ranks(2);
  ranks.transports[1].reset();
  ranks.connect(0, 2, 2);
  CHECK(ranks[0].connected() == Progress::pending);
  ranks.clocks[1].advance_to(at(3s));
  ranks.connect(1, 2, 2);
  CHECK(ranks[1].connected() == Progress::done);
  CHECK(ranks[0].connected() == Progress::pending);  // its clock has not reached that time
  CHECK(ranks.wakes[0].next == at(3s));
  ranks.clocks[0].advance_to(at(3s));
  CHECK(ranks[0].connected() == Progress::done);
}

TEST_CASE("Memory network: who does not come is named at the deadline") {
  Ranks ranks(3);
  ranks.connect(0, 3, 2);
  ranks.connect(2, 3, 2);
  ranks.clocks[0].advance_to(at(5s));
  CHECK(ranks[0].connected() == Progress::failed);
  CHECK(ranks[0].error().code == ErrorCode::timed_out);
  CHECK(ranks[0].error().message.find("rank 1 (device-1)") != std::string::npos);
  CHECK(ranks[0].lost_rank() == 1);
}

TEST_CASE("Memory network: a message arrives after latency and its time on the wire, to the nanosecond") {
  Ranks ranks(2, {.latency = 10ms, .bytes_per_second = 1000});
  connect_all(ranks);
  std::vector<std::byte> out(100, std::byte{7}), in(100), in2(100);
  const Ticket got = ranks[1].receive(0, Lane::payload, in);
  const Ticket sent = ranks[0].send(1, Lane::payload, out);
  CHECK(ranks.wakes[1].next == at(110ms));
  CHECK(ranks[0].poll(sent) == Progress::pending);
  ranks.all_to(100ms - 1ns);
  CHECK(ranks[0].poll(sent) == Progress::pending);
  ranks.all_to(100ms);
  CHECK(ranks[0].poll(sent) == Progress::done);
  ranks.all_to(110ms - 1ns);
  CHECK(ranks[1].poll(got) == Progress::pending);
  ranks.all_to(110ms);
  CHECK(ranks[1].poll(got) == Progress::done);
  CHECK(in == out);
}

TEST_CASE("Memory network: messages of one direction queue for the wire, those of the other do not") {
  Ranks ranks(2, {.latency = 0ms, .bytes_per_second = 1000});
  connect_all(ranks);
  std::vector<std::byte> out(100), a(100), b(100), c(100);
  ranks[0].send(1, Lane::payload, out);
  ranks[0].send(1, Lane::facts, out);
  ranks[1].send(0, Lane::facts, out);
  const Ticket first = ranks[1].receive(0, Lane::payload, a);
  const Ticket second = ranks[1].receive(0, Lane::facts, b);
  const Ticket back = ranks[0].receive(1, Lane::facts, c);
  ranks.all_to(100ms);
  CHECK(ranks[1].poll(first) == Progress::done);
  CHECK(ranks[1].poll(second) == Progress::pending);
  CHECK(ranks[0].poll(back) == Progress::done);
  ranks.all_to(200ms);
  CHECK(ranks[1].poll(second) == Progress::done);
}

/// These and Gloo's head of 48 bytes fill an Ethernet frame. With headers and Gloo's other traffic, the links
/// of the tests below carry one frame per second.
constexpr std::size_t one_frame = 1448 - 48;
constexpr std::size_t on_the_link = 1514 + 2 * (48 + 66) + 66;
constexpr sync::MemoryNetwork::Link frame_a_second{Duration::zero(), on_the_link};

/// Two ranks that each send a frame to the third, over its link.
struct TwoToOne : Ranks {
  TwoToOne() : Ranks(3) {
    network.set_own_link("device-2", frame_a_second);
    connect_all(*this);
    from_0 = (*this)[2].receive(0, Lane::payload, a);
    from_1 = (*this)[2].receive(1, Lane::payload, b);
  }
  void send(std::uint32_t rank, TimePoint at) {
    clocks[rank].advance_to(at);
    (*this)[rank].send(2, Lane::payload, out);
  }
  std::vector<std::byte> out = std::vector<std::byte>(one_frame), a = out, b = out;
  Ticket from_0, from_1;
};

TEST_CASE("Memory network: a device's own link takes messages as they reach it, whichever was asked first") {
  TwoToOne ranks;
  ranks.send(0, at(5s));
  ranks.send(1, at(3s));
  ranks.clocks[2].advance_to(at(4s));
  CHECK(ranks[2].poll(ranks.from_1) == Progress::done);
  ranks.clocks[2].advance_to(at(6s - 1ns));
  CHECK(ranks[2].poll(ranks.from_0) == Progress::pending);
  ranks.clocks[2].advance_to(at(6s));
  CHECK(ranks[2].poll(ranks.from_0) == Progress::done);
}

TEST_CASE(
    "Memory network: who is put off on a device's own link is told the new time, and is slower for it") {
  TwoToOne ranks;
  ranks.send(0, at(3s));
  ranks.send(1, at(2500ms));
  ranks.clocks[2].advance_to(at(4s));
  CHECK(ranks[2].poll(ranks.from_1) == Progress::done);
  CHECK(ranks[2].poll(ranks.from_0) == Progress::pending);
  CHECK(ranks.wakes[2].next == at(4780ms));
  // Its sender is killed: messages in flight arrive before that is detected.
  ranks.network.kill("device-0");
  CHECK(ranks[2].healthy());
  ranks.clocks[2].advance_to(at(4780ms));
  CHECK(ranks[2].poll(ranks.from_0) == Progress::done);
}

TEST_CASE("Memory network: a device's own link is slower to several peers at once than to one") {
  Ranks ranks(3);
  ranks.network.set_own_link("device-0", frame_a_second);
  connect_all(ranks);
  std::vector<std::byte> out(one_frame);
  ranks[0].send(1, Lane::payload, out);
  ranks[0].send(1, Lane::payload, out);
  CHECK(ranks.wakes[1].next == at(2s));
  ranks[0].send(2, Lane::payload, out);
  CHECK(ranks.wakes[2].next == at(3280ms));
}

/// Time at which a rank has its received messages, to 20 ms.
std::vector<Duration> arrivals(Ranks& ranks, std::uint32_t rank, const std::vector<Ticket>& tickets,
                               Duration from, Duration until) {
  std::vector<Duration> all(tickets.size(), Duration::zero());
  for (Duration t = from; t <= until; t += 20ms) {
    ranks.clocks[rank].advance_to(at(t));
    for (std::size_t i = 0; i < tickets.size(); ++i)
      if (all[i] == Duration::zero() && ranks[rank].poll(tickets[i]) == Progress::done) all[i] = t;
  }
  return all;
}

TEST_CASE(
    "Memory network: after a rest a bucket of bytes passes a device's own link at once, and is made up for") {
  Ranks ranks(2, {}, {.progress_deadline = 1h});
  ranks.network.set_own_link("device-0", {Duration::zero(), on_the_link, 2 * on_the_link});
  connect_all(ranks);
  std::vector<std::byte> out(one_frame);
  std::vector<std::vector<std::byte>> in(6, out);
  std::vector<Ticket> tickets;
  for (auto& bytes : in) tickets.push_back(ranks[1].receive(0, Lane::payload, bytes));
  ranks.all_to(10s);
  for (int i = 0; i < 4; ++i) ranks[0].send(1, Lane::payload, out);
  ranks.clocks[0].advance_to(at(13s));  // idle for one second: the bucket holds one frame again
  for (int i = 0; i < 2; ++i) ranks[0].send(1, Lane::payload, out);
  CHECK(arrivals(ranks, 1, tickets, 10s, 15s) == std::vector<Duration>{10s, 10s, 11s, 12s, 13s, 14s});
}

TEST_CASE("Memory network: a bucket at the receiving end passes what comes from several at once") {
  for (const std::size_t frames : {0U, 1U}) {
    Ranks ranks(3, {}, {.progress_deadline = 1h});
    ranks.network.set_own_link("device-2", {Duration::zero(), on_the_link, frames * on_the_link});
    connect_all(ranks);
    std::vector<std::byte> out(one_frame);
    auto a = out;
    auto b = out;
    const std::vector<Ticket> tickets{ranks[2].receive(0, Lane::payload, a),
                                      ranks[2].receive(1, Lane::payload, b)};
    ranks.all_to(10s);
    ranks[0].send(2, Lane::payload, out);
    ranks[1].send(2, Lane::payload, out);
    const auto last = std::ranges::max(arrivals(ranks, 2, tickets, 10s, 14s));
    CHECK(last == (frames == 0 ? 12280ms : 11s));
  }
}

TEST_CASE("Memory network: a send over a device's own link is done when its socket holds the rest of it") {
  Ranks ranks(2, {}, {.progress_deadline = 1h});
  ranks.network.set_own_link("device-0", frame_a_second);
  connect_all(ranks);
  const std::vector<std::byte> little(one_frame);
  const std::vector<std::byte> much(128 * 1024 + 10 * one_frame);
  const Ticket first = ranks[0].send(1, Lane::payload, little);
  CHECK(ranks[0].poll(first) == Progress::done);
  CHECK(ranks.wakes[1].next == at(1s));
  const Ticket second = ranks[0].send(1, Lane::payload, much);
  ranks.all_to(9s);
  CHECK(ranks[0].poll(second) == Progress::pending);
  ranks.all_to(10s);
  CHECK(ranks[0].poll(second) == Progress::done);
  // A small message after it finds space in the socket once enough of the other has left.
  const Ticket third = ranks[0].send(1, Lane::facts, little);
  ranks.all_to(11s);
  CHECK(ranks[0].poll(third) == Progress::done);
}

TEST_CASE(
    "Memory network: a lost message, and what follows it on its lane, never arrives; the deadline names the "
    "sender") {
  Ranks ranks(2, {}, {.progress_deadline = 1s});
  connect_all(ranks);
  ranks.network.set_loss([](std::uint32_t from, std::uint32_t, Lane lane, std::uint64_t index) {
    return from == 0 && lane == Lane::payload && index == 1;
  });
  std::array<std::byte, 4> out{}, in{};
  for (int i = 0; i < 3; ++i) ranks[0].send(1, Lane::payload, out);
  CHECK(ranks[1].poll(ranks[1].receive(0, Lane::payload, in)) == Progress::done);
  const Ticket lost = ranks[1].receive(0, Lane::payload, in);
  const Ticket behind = ranks[1].receive(0, Lane::payload, in);
  ranks.all_to(1s - 1ns);
  CHECK(ranks[1].poll(behind) == Progress::pending);
  CHECK(ranks[1].poll(lost) == Progress::pending);
  ranks.all_to(1s);
  CHECK(ranks[1].poll(lost) == Progress::failed);
  CHECK(ranks[1].error().code == ErrorCode::timed_out);
  CHECK(ranks[1].error().message.find("rank 0 (device-0)") != std::string::npos);
  CHECK_FALSE(ranks[0].healthy());  // the error propagates
}

TEST_CASE("Memory network: chunks of a long message are progress, so it may take longer than the deadline") {
  Ranks ranks(2, {.latency = 0ms, .bytes_per_second = 1000}, {.progress_deadline = 1s, .chunk_bytes = 500});
  connect_all(ranks);
  std::vector<std::byte> out(5000), in(5000);
  const Ticket sent = ranks[0].send(1, Lane::payload, out);
  const Ticket got = ranks[1].receive(0, Lane::payload, in);
  for (int tenth = 1; tenth < 50; ++tenth) {
    ranks.all_to(100ms * tenth);
    CHECK(ranks[1].poll(got) == Progress::pending);
    CHECK(ranks[0].poll(sent) == Progress::pending);
  }
  ranks.all_to(5s);
  CHECK(ranks[1].poll(got) == Progress::done);
}

TEST_CASE("Memory network: one message as one chunk longer than the deadline is too slow") {
  Ranks ranks(2, {.latency = 0ms, .bytes_per_second = 1000}, {.progress_deadline = 1s, .chunk_bytes = 5000});
  connect_all(ranks);
  std::vector<std::byte> out(5000), in(5000);
  ranks[0].send(1, Lane::payload, out);
  const Ticket got = ranks[1].receive(0, Lane::payload, in);
  ranks.all_to(1s);
  CHECK(ranks[1].poll(got) == Progress::failed);
}

TEST_CASE("Memory network: a message of another size than expected is a protocol error") {
  Ranks ranks(2);
  connect_all(ranks);
  std::array<std::byte, 8> out{};
  std::array<std::byte, 7> in{};
  ranks[0].send(1, Lane::phase, out);
  CHECK(ranks[1].poll(ranks[1].receive(0, Lane::phase, in)) == Progress::failed);
  CHECK(ranks[1].error().code == ErrorCode::protocol);
}

TEST_CASE("Memory network: a killed device is seen after the latency, behind what it had sent") {
  Ranks ranks(3, {.latency = 10ms, .bytes_per_second = 1000});
  connect_all(ranks);
  std::vector<std::byte> out(100, std::byte{9}), in(100), never(100);
  const Ticket got = ranks[0].receive(2, Lane::payload, in);
  const Ticket open = ranks[0].receive_ahead(2, Lane::facts, never);
  ranks[2].send(0, Lane::payload, out);
  ranks.network.kill("device-2");
  CHECK(ranks[0].healthy());
  ranks.all_to(10ms);
  CHECK(ranks[0].healthy());
  CHECK_FALSE(ranks[1].healthy());
  CHECK(ranks[1].error().message.find("rank 2 (device-2)") != std::string::npos);
  ranks.all_to(110ms);
  CHECK(ranks[0].poll(got) == Progress::done);
  CHECK(in == out);
  CHECK(ranks[0].poll(open) == Progress::failed);
  CHECK(ranks[0].lost_rank() == 2);
  CHECK(ranks[2].healthy() == false);
}

TEST_CASE(
    "Memory network: a device killed before it connected fails those who wait for it, until it comes again") {
  Ranks ranks(2);
  ranks.network.kill("device-1");
  ranks.connect(0, 2, 2);
  CHECK(ranks[0].connected() == Progress::failed);
  ranks.connect(1, 2, 3);
  ranks.connect(0, 2, 3);
  CHECK(ranks[0].connected() == Progress::done);
}

TEST_CASE("Memory network: a group of one stands at once") {
  Ranks ranks(1);
  CHECK(ranks[0].connected() == Progress::done);
  CHECK(ranks[0].healthy());
}

}  // namespace
