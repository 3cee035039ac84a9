#include <algorithm>
#include <cstring>
#include <string>

#include "sync/collective/aggregation.h"
#include "sync/collective/gathered_sum.h"
#include "sync/collective/speculative_gather.h"

namespace rivulet::sync {
namespace {

/// What travels to or from one rank: a header, and the payload behind it in the same memory.
struct PeerMessage {
  enum class Step : std::uint8_t { header, payload, here, nothing };
  Step step = Step::nothing;
  std::vector<std::byte> bytes;  ///< keeps its memory from round to round
  std::size_t length = 0;        ///< of the payload
  Ticket ticket;

  /// Memory for a payload of so many bytes; what is there stays.
  void make_room(std::size_t payload) {
    if (bytes.size() < payload_header_bytes + payload) bytes.resize(payload_header_bytes + payload);
  }
  [[nodiscard]] std::span<std::byte> header() { return std::span(bytes).first(payload_header_bytes); }
  [[nodiscard]] std::span<std::byte> payload() {
    return std::span(bytes).subspan(payload_header_bytes, length);
  }
  [[nodiscard]] std::span<std::byte> all() { return std::span(bytes).first(payload_header_bytes + length); }
};

/// Everyone sends its encoded payload to everyone; all decode all payloads, own bytes included, in rank
/// order, so that the sum has the same bits everywhere. A rank of weight 0 sends nothing, as the plan told
/// everybody. A compressor of fixed size sends header and payload as one message; else the header goes first
/// and says how much to receive.
class Gather final : public Aggregation {
 public:
  Status begin(Transport& transport, const Exchange& exchange) override;
  Progress poll() override;
  bool wait() override {
    return transport_->wait(next_ < messages_.size() ? messages_[next_].ticket : sends_.back());
  }
  const Error& error() const override { return error_; }

 private:
  Status encode_mine();
  void post_all();
  Progress advance_inbound();
  Progress receive_from(std::uint32_t rank);
  Progress open(std::uint32_t rank);
  Progress fail(Error error);
  [[nodiscard]] std::size_t bytes_max() const {
    return exchange_.compressor->bytes_max(exchange_.agreed.count, exchange_.agreed.scalar);
  }

  Transport* transport_ = nullptr;
  Exchange exchange_;
  bool one_message_ = false;
  std::vector<PeerMessage> messages_;  ///< by rank, mine included
  std::vector<Ticket> sends_;
  std::uint32_t next_ = 0;  ///< rank whose bytes are added next
  bool failed_ = false;
  Error error_;
};

Status Gather::begin(Transport& transport, const Exchange& exchange) {
  RIVULET_CHECK(exchange.weights.size() == transport.world(), "a weight per rank");
  transport_ = &transport;
  exchange_ = exchange;
  messages_.resize(transport.world());
  sends_.clear();
  next_ = 0;
  failed_ = false;
  one_message_ = exchange.compressor->has_fixed_size();
  std::memset(exchange.agreed.host_bytes().data(), 0, exchange.agreed.bytes());
  for (std::uint32_t r = 0; r < transport.world(); ++r) {
    messages_[r].step = exchange.weights[r] > 0 ? PeerMessage::Step::header : PeerMessage::Step::nothing;
  }
  if (auto encoded = encode_mine(); !encoded) return encoded;
  post_all();
  return ok();
}

Status Gather::encode_mine() {
  const std::uint32_t me = transport_->rank();
  const double weight = exchange_.weights[me];
  if (!(weight > 0)) return ok();
  PeerMessage& mine = messages_[me];
  mine.length = bytes_max();
  mine.make_room(mine.length);
  const auto used = encode_contribution(exchange_, weight, mine.payload());
  if (!used) return used.error();
  RIVULET_CHECK(!one_message_ || used.value() == mine.length, "a compressor of fixed size made another one");
  mine.length = used.value();
  const auto header =
      encode_header({exchange_.view, exchange_.round, exchange_.compressor_entry->wire_id, mine.length});
  std::ranges::copy(header, mine.header().begin());
  mine.step = PeerMessage::Step::here;
  return ok();
}

void Gather::post_all() {
  const std::uint32_t me = transport_->rank();
  const std::uint32_t world = transport_->world();
  // Each rank starts with its right neighbour, so that not all of them send to rank 0 first.
  for (std::uint32_t k = 1; k < world; ++k) {
    const std::uint32_t peer = (me + k) % world;
    PeerMessage& theirs = messages_[peer];
    if (theirs.step != PeerMessage::Step::header) continue;
    theirs.length = one_message_ ? bytes_max() : 0;
    theirs.make_room(theirs.length);
    theirs.ticket = transport_->receive(peer, one_message_ ? Lane::payload : Lane::header, theirs.all());
  }
  PeerMessage& mine = messages_[me];
  if (mine.step != PeerMessage::Step::here) return;
  for (std::uint32_t k = 1; k < world && !one_message_; ++k)
    sends_.push_back(transport_->send((me + k) % world, Lane::header, mine.header()));
  for (std::uint32_t k = 1; k < world; ++k)
    sends_.push_back(
        transport_->send((me + k) % world, Lane::payload, one_message_ ? mine.all() : mine.payload()));
}

Progress Gather::poll() {
  if (failed_) return Progress::failed;
  const Progress in = advance_inbound();
  if (in == Progress::failed) return in;
  const Progress out = finish_all(*transport_, sends_);
  if (out == Progress::failed) return fail(transport_->error());
  return in == Progress::done && out == Progress::done ? Progress::done : Progress::pending;
}

Progress Gather::advance_inbound() {
  for (std::uint32_t r = 0; r < messages_.size(); ++r) {
    if (receive_from(r) == Progress::failed) return Progress::failed;
  }
  for (; next_ < messages_.size(); ++next_) {
    PeerMessage& message = messages_[next_];
    if (message.step == PeerMessage::Step::nothing) continue;
    if (message.step != PeerMessage::Step::here) return Progress::pending;
    const auto added =
        add_contribution(exchange_, Weighing::by_sender, next_, message.payload(), exchange_.agreed);
    if (!added) return fail(added.error());
  }
  return Progress::done;
}

Progress Gather::receive_from(std::uint32_t rank) {
  PeerMessage& message = messages_[rank];
  if (message.step == PeerMessage::Step::header) {
    const Progress p = transport_->poll(message.ticket);
    if (p == Progress::failed) return fail(transport_->error());
    if (p == Progress::pending) return p;
    if (const Progress opened = open(rank); opened != Progress::done) return opened;
  }
  if (message.step == PeerMessage::Step::payload) {
    const Progress p = transport_->poll(message.ticket);
    if (p == Progress::failed) return fail(transport_->error());
    if (p == Progress::done) message.step = PeerMessage::Step::here;
  }
  return Progress::done;
}

/// The header is here; the payload is, too, or is received now.
Progress Gather::open(std::uint32_t rank) {
  PeerMessage& message = messages_[rank];
  const auto length = open_header(exchange_, rank, message.header(),
                                  one_message_ ? std::optional(message.length) : std::nullopt);
  if (!length) return fail(length.error());
  message.step = PeerMessage::Step::here;
  if (one_message_) return Progress::done;
  message.length = length.value();
  message.make_room(message.length);
  message.ticket = transport_->receive(rank, Lane::payload, message.payload());
  message.step = PeerMessage::Step::payload;
  return Progress::done;
}

Progress Gather::fail(Error error) {
  failed_ = true;
  error_ = std::move(error);
  return Progress::failed;
}

}  // namespace

extern const AggregationEntry aggregation_gather;
const AggregationEntry aggregation_gather{
    "gather", "everyone gets every payload and adds them in rank order: the same bits on every device",
    []() -> std::unique_ptr<Aggregation> { return std::make_unique<Gather>(); },
    []() -> std::unique_ptr<Aggregation> { return make_gathered_sum(Weighing::by_sender); },
    [](bool gathers) {
      return gathers ? make_gathered_sum(Weighing::by_receiver) : make_speculative_gather();
    }};

}  // namespace rivulet::sync
