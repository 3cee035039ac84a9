#include "sync/collective/slot_gather.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/check.h"

namespace rivulet::sync {
namespace {

/// Header and payload of one rank.
struct SlotMessage {
  std::vector<std::byte> bytes;  ///< reused in each round
  Ticket ticket;                 ///< ticket of the receive
  bool posted = false;
  bool expected = false;  ///< in this round
  bool here = false;
};

/// Sends each rank's payload to all. Each rank adds all payloads, including its own, in rank order, so the
/// sum has the same bits everywhere. The plan determines which ranks send.
class SlotGather final : public SpeculativeAggregation {
 public:
  explicit SlotGather(bool early) : early_(early) {}
  Status send(Transport& transport, const Exchange& exchange, bool has_rows) override;
  Status begin(Transport& transport, const Exchange& exchange) override;
  void give_up(std::span<const std::uint32_t> rows) override;
  Progress poll() override;
  bool wait() override {
    return transport_->wait(next_ < messages_.size() ? messages_[next_].ticket : sends_.back());
  }
  [[nodiscard]] const Error& error() const override { return error_; }

 private:
  void start(Transport& transport, const Exchange& exchange);
  void send_mine(Lane lane);
  void post_ahead();
  void expect(std::uint32_t rank, bool something);
  Progress receive_from(std::uint32_t rank);
  Progress use_next();
  Progress fail(Error error);
  /// Starts with the right neighbor, so that not all ranks send to rank 0 first.
  template <class F>
  void for_each_peer(F f) {
    for (std::uint32_t k = 1; k < transport_->world(); ++k) f((transport_->rank() + k) % transport_->world());
  }
  [[nodiscard]] std::span<std::byte> payload(std::uint32_t rank) {
    return std::span(messages_[rank].bytes).subspan(payload_header_bytes);
  }

  const bool early_;
  Transport* transport_ = nullptr;
  Exchange exchange_;
  std::vector<SlotMessage> messages_;  ///< by rank, including this one
  std::vector<Ticket> sends_;
  std::uint32_t next_ = 0;  ///< rank whose payload is added next
  bool forgets_ = false;    ///< discards what is received
  bool failed_ = false;
  Error error_;
};

void SlotGather::start(Transport& transport, const Exchange& exchange) {
  transport_ = &transport;
  exchange_ = exchange;
  failed_ = false;
  sends_.clear();
  messages_.resize(transport.world());
  // A posted receive keeps its buffer. The session creates a new object for slots of a different size.
  for (SlotMessage& message : messages_)
    if (!message.posted) message.bytes.resize(payload_header_bytes + exchange.payload_bytes());
}

Status SlotGather::send(Transport& transport, const Exchange& exchange, bool has_rows) {
  start(transport, exchange);
  post_ahead();
  if (has_rows) send_mine(Lane::speculative);
  return ok();
}

void SlotGather::send_mine(Lane lane) {
  const std::uint32_t me = transport_->rank();
  encode_contribution(exchange_, payload(me));
  const auto header =
      encode_header({exchange_.view, exchange_.round, exchange_.compressor->wire_id, payload(me).size()});
  std::ranges::copy(header, messages_[me].bytes.begin());
  for_each_peer(
      [&](std::uint32_t peer) { sends_.push_back(transport_->send(peer, lane, messages_[me].bytes)); });
}

void SlotGather::post_ahead() {
  for_each_peer([&](std::uint32_t peer) {
    SlotMessage& message = messages_[peer];
    if (message.posted) return;
    message.ticket = transport_->receive_ahead(peer, Lane::speculative, message.bytes);
    message.posted = true;
  });
}

Status SlotGather::begin(Transport& transport, const Exchange& exchange) {
  RIVULET_CHECK(exchange.weights.size() == transport.world(), "needs one weight per rank");
  forgets_ = false;
  next_ = 0;
  if (early_)
    exchange_ = exchange;
  else
    start(transport, exchange);
  std::memset(exchange.agreed.host_bytes().data(), 0, exchange.agreed.bytes());
  for (std::uint32_t rank = 0; rank < messages_.size(); ++rank) expect(rank, exchange.sends(rank));
  if (early_) return ok();
  for_each_peer([&](std::uint32_t peer) {
    SlotMessage& message = messages_[peer];
    if (message.expected) message.ticket = transport_->receive(peer, Lane::payload, message.bytes);
  });
  if (exchange.sends(transport.rank())) send_mine(Lane::payload);
  return ok();
}

void SlotGather::give_up(std::span<const std::uint32_t> rows) {
  forgets_ = true;
  next_ = 0;
  for (std::uint32_t rank = 0; rank < messages_.size(); ++rank) expect(rank, rows[rank] > 0);
}

void SlotGather::expect(std::uint32_t rank, bool something) {
  SlotMessage& message = messages_[rank];
  message.expected = something;
  message.here = false;
  if (early_ && something && rank != transport_->rank()) transport_->promote(message.ticket);
}

Progress SlotGather::poll() {
  if (failed_) return Progress::failed;
  for (std::uint32_t rank = 0; rank < messages_.size(); ++rank)
    if (receive_from(rank) == Progress::failed) return Progress::failed;
  for (; next_ < messages_.size(); ++next_)
    if (const Progress p = use_next(); p != Progress::done) return p;
  const Progress p = finish_all(*transport_, sends_);
  if (p == Progress::failed) return fail(transport_->error());
  if (p == Progress::done && early_) post_ahead();
  return p;
}

/// Checks a received message immediately, even while a lower rank is silent.
Progress SlotGather::receive_from(std::uint32_t rank) {
  SlotMessage& message = messages_[rank];
  if (!message.expected || message.here) return Progress::done;
  if (rank != transport_->rank()) {
    const Progress p = transport_->poll(message.ticket);
    if (p == Progress::failed) return fail(transport_->error());
    if (p == Progress::pending) return p;
    message.posted = false;
    if (auto opened = check_header(exchange_, rank, message.bytes); !opened) return fail(opened.error());
  }
  message.here = true;
  return Progress::done;
}

Progress SlotGather::use_next() {
  const SlotMessage& message = messages_[next_];
  if (!message.expected) return Progress::done;
  if (!message.here) return Progress::pending;
  if (forgets_) return Progress::done;
  const auto added = add_contribution(exchange_, next_, payload(next_), exchange_.agreed);
  return added ? Progress::done : fail(added.error());
}

Progress SlotGather::fail(Error error) {
  failed_ = true;
  error_ = std::move(error);
  return Progress::failed;
}

}  // namespace

std::unique_ptr<SpeculativeAggregation> make_slot_gather(bool early) {
  return std::make_unique<SlotGather>(early);
}

}  // namespace rivulet::sync
