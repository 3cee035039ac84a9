#include <doctest/doctest.h>

#include <array>

#include "core/clock.h"
#include "sync/collective/aggregation.h"
#include "sync/collective/memory_transport.h"
#include "tests/support/quiet_rank.h"

namespace {

using namespace rivulet;
using namespace std::chrono_literals;
using sync::Lane;
using sync::Ticket;
using testing::at;
using testing::LastCall;
using testing::NoAddresses;

/// Ranks of one view on one thread, each with a clock that the test moves.
struct Ranks {
  explicit Ranks(std::uint32_t world, sync::MemoryNetwork::Link link = {}, sync::TransportConfig config = {})
      : network(link, config), clocks(world), wakes(world), transports(world) {
    for (std::uint32_t r = 0; r < world; ++r) connect(r, world, 1);
  }
  void connect(std::uint32_t r, std::uint32_t world, std::uint64_t token) {
    std::vector<std::string> members(world);
    for (std::uint32_t m = 0; m < world; ++m) members[m] = "device-" + std::to_string(m);
    const sync::ViewSpec view{.number = 1, .token = token, .members = std::move(members), .rank = r};
    auto made = network.connect_for(clocks[r])(view, book, wakes[r]);
    REQUIRE(made);
    transports[r] = std::move(made).value();
  }
  void all_to(Duration d) {
    for (auto& clock : clocks) clock.advance_to(at(d));
  }
  sync::Transport& operator[](std::uint32_t r) { return *transports[r]; }

  NoAddresses book;
  sync::MemoryNetwork network;
  std::vector<VirtualClock> clocks;
  std::vector<LastCall> wakes;
  std::vector<std::unique_ptr<sync::Transport>> transports;
};

void connect_all(Ranks& ranks) {
  for (auto& t : ranks.transports) REQUIRE(t->connected() == Progress::done);
}

TEST_CASE("Memory network: the group stands when the last one has come, and not before") {
  Ranks ranks(2);
  ranks.transports[1].reset();
  ranks.connect(0, 2, 2);
  CHECK(ranks[0].connected() == Progress::pending);
  ranks.clocks[1].advance_to(at(3s));
  ranks.connect(1, 2, 2);
  CHECK(ranks[1].connected() == Progress::done);
  CHECK(ranks[0].connected() == Progress::pending);  // its clock is not there yet
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

/// One frame of Ethernet, headers included; the links of the tests below carry one a second.
constexpr std::size_t one_frame = 1448;
constexpr sync::MemoryNetwork::Link frame_a_second{Duration::zero(), 1514};

/// Two ranks that each send a frame to the third, over what is its own.
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

TEST_CASE("Memory network: a device's own link takes messages as they reach it, whoever was asked first") {
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
  // Its sender is gone: what is still on its way arrives before that is seen.
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
  ranks.all_to(11s);
  CHECK(ranks[0].poll(second) == Progress::pending);
  ranks.all_to(12s);
  CHECK(ranks[0].poll(second) == Progress::done);
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
  CHECK_FALSE(ranks[0].healthy());  // the error runs round
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
  ranks[0].send(1, Lane::header, out);
  CHECK(ranks[1].poll(ranks[1].receive(0, Lane::header, in)) == Progress::failed);
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

// ---- gather refuses what the plan does not allow
// ------------------------------------------------------------------

struct Gathering {
  Ranks ranks{2};
  std::vector<float> mine = std::vector<float>(4, 1.0F), agreed = std::vector<float>(4);
  sync::policy::RoundPlan plan;
  std::unique_ptr<sync::Codec> codec;
  const sync::CodecEntry* codec_entry = nullptr;
  std::unique_ptr<sync::Aggregation> gather;
  sync::Exchange exchange;

  Gathering() {
    connect_all(ranks);
    plan.weights = {0.5, 0.5};
    plan.payload_max_bytes = 16;
    for (const auto* e : sync::builtin_codecs()) codec_entry = e->name == "dense" ? e : codec_entry;
    codec = codec_entry->make();
    for (const auto* e : sync::builtin_aggregations()) {
      if (e->name == "gather") gather = e->make();
    }
    exchange = {.view = 1,
                .round = 5,
                .plan = &plan,
                .mine = {.data = reinterpret_cast<std::byte*>(mine.data()), .count = 4},
                .agreed = {.data = reinterpret_cast<std::byte*>(agreed.data()), .count = 4},
                .codec = codec.get(),
                .codec_entry = codec_entry};
  }
  /// Rank 1 sends this header with a payload behind it; what rank 0 makes of it.
  Progress meet(const sync::PayloadHeader& header) {
    REQUIRE(gather->begin(ranks[0], exchange));
    std::array<std::byte, sync::payload_header_bytes + 16> message{};
    std::ranges::copy(sync::encode_header(header), message.begin());
    ranks[1].send(0, Lane::payload, message);
    return gather->poll();
  }
  /// The same of a codec whose payloads differ in length: two messages.
  Progress meet_in_two(const sync::PayloadHeader& header, std::span<const std::byte> payload) {
    REQUIRE(gather->begin(ranks[0], exchange));
    const auto bytes = sync::encode_header(header);
    ranks[1].send(0, Lane::header, bytes);
    ranks[1].send(0, Lane::payload, payload);
    return gather->poll();
  }
};

/// dense, but it does not say so.
class OfAnyLength final : public sync::Codec {
 public:
  explicit OfAnyLength(sync::Codec& dense) : dense_(dense) {}
  [[nodiscard]] bool accepts(MemoryKind kind) const noexcept override { return dense_.accepts(kind); }
  [[nodiscard]] std::size_t bytes_max(std::size_t count, Scalar scalar) const noexcept override {
    return dense_.bytes_max(count, scalar);
  }
  Result<std::size_t> encode(const GradientView& in, double weight, double keep_ratio,
                             std::span<std::byte> out) override {
    return dense_.encode(in, weight, keep_ratio, out);
  }
  Status decode_add(std::span<const std::byte> bytes, const GradientView& sum) override {
    return dense_.decode_add(bytes, sum);
  }
  void commit() noexcept override {}
  void drop() noexcept override {}

 private:
  sync::Codec& dense_;
};

TEST_CASE("Gather: takes a header that fits the plan") {
  Gathering g;
  CHECK(g.meet({.view = 1, .round = 5, .codec = 1, .length = 16}) == Progress::done);
  CHECK(g.agreed == std::vector<float>(4, 0.5F));
}

TEST_CASE(
    "Gather: a header of another view, round, codec or above the bound is refused before its payload is "
    "taken") {
  const sync::PayloadHeader right{.view = 1, .round = 5, .codec = 1, .length = 16};
  for (const char* field : {"view", "round", "codec", "length"}) {
    Gathering g;
    sync::PayloadHeader wrong = right;
    const std::string name = field;
    if (name == "view") wrong.view = 2;
    if (name == "round") wrong.round = 4;
    if (name == "codec") wrong.codec = 9;
    if (name == "length") wrong.length = 17;
    CHECK(g.meet(wrong) == Progress::failed);
    CHECK(g.gather->error().code == ErrorCode::protocol);
    CHECK(g.gather->error().message.find(name) != std::string::npos);
    CHECK(g.gather->error().message.find("rank 1") != std::string::npos);
  }
}

TEST_CASE(
    "Gather: payloads of any length have their header in front, which is checked before they are taken") {
  const std::array<std::byte, 17> payload{};
  for (const std::uint64_t length : {16, 8, 17}) {
    Gathering g;
    OfAnyLength codec(*g.codec);
    g.exchange.codec = &codec;
    const Progress p = g.meet_in_two({.view = 1, .round = 5, .codec = 1, .length = length},
                                     std::span(payload).first(static_cast<std::size_t>(length)));
    CHECK((p == Progress::done) == (length == 16));
    if (length == 16) continue;
    // 8: the codec refuses what is too short for the model; 17: more than the plan allows, never received
    CHECK(g.gather->error().message.find("rank 1") != std::string::npos);
    CHECK((g.gather->error().message.find("length is 17") != std::string::npos) == (length == 17));
  }
}

TEST_CASE("Gather: the plan's bound also holds for who sends nothing itself") {
  Gathering g;
  g.plan.weights = {0, 1};
  g.plan.payload_max_bytes = 15;
  CHECK(g.meet({.view = 1, .round = 5, .codec = 1, .length = 16}) == Progress::failed);
  CHECK(g.gather->error().message.find("length is 16, expected 15") != std::string::npos);
}

TEST_CASE("Gather: an own payload above the plan's bound is an error of begin") {
  Gathering g;
  g.plan.payload_max_bytes = 15;
  const auto begun = g.gather->begin(g.ranks[0], g.exchange);
  REQUIRE_FALSE(begun);
  CHECK(begun.error().code == ErrorCode::protocol);
}

}  // namespace
