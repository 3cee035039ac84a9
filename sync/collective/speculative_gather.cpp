#include "sync/collective/speculative_gather.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/check.h"

namespace rivulet::sync {
namespace {

/// Header and payload of one rank.
struct SpeculativeMessage {
  std::vector<std::byte> bytes;  ///< keeps its memory from round to round
  Ticket ticket;                 ///< of its receive
  bool posted = false;
  bool expected = false;  ///< in this round
  bool here = false;
};

class EarlyGather final : public SpeculativeAggregation {
 public:
  Status send(Transport& transport, const Exchange& exchange, bool has_rows) override;
  Status begin(Transport& transport, const Exchange& exchange) override;
  void give_up(std::span<const std::uint32_t> rows) override;
  Progress poll() override;
  bool wait() override {
    return transport_->wait(next_ < messages_.size() ? messages_[next_].ticket : sends_.back());
  }
  [[nodiscard]] const Error& error() const override { return error_; }

 private:
  Status encode_mine();
  void post_ahead();
  void expect(std::uint32_t rank, bool something);
  Progress receive_from(std::uint32_t rank);
  Progress use_next();
  Progress fail(Error error);
  [[nodiscard]] std::span<std::byte> payload(std::uint32_t rank) {
    return std::span(messages_[rank].bytes).subspan(payload_header_bytes);
  }

  Transport* transport_ = nullptr;
  Exchange exchange_;
  std::vector<SpeculativeMessage> messages_;  ///< by rank, mine included
  std::vector<Ticket> sends_;
  std::uint32_t next_ = 0;  ///< rank whose bytes are used next
  bool forgets_ = false;    ///< what comes is for nothing
  bool failed_ = false;
  Error error_;
};

Status EarlyGather::send(Transport& transport, const Exchange& exchange, bool has_rows) {
  RIVULET_CHECK(exchange.compressor->has_fixed_size() && exchange.compressor->receiver_weighted(),
                "a compressor that needs the plan");
  transport_ = &transport;
  exchange_ = exchange;
  failed_ = false;
  sends_.clear();
  messages_.resize(transport.world());
  const std::size_t length = exchange.compressor->bytes_max(exchange.agreed.count, exchange.agreed.scalar);
  for (SpeculativeMessage& message : messages_) message.bytes.resize(payload_header_bytes + length);
  post_ahead();
  if (!has_rows) return ok();
  if (auto encoded = encode_mine(); !encoded) return encoded;
  const std::uint32_t me = transport.rank();
  for (std::uint32_t k = 1; k < transport.world(); ++k)
    sends_.push_back(transport.send((me + k) % transport.world(), Lane::speculative, messages_[me].bytes));
  return ok();
}

Status EarlyGather::encode_mine() {
  const std::uint32_t me = transport_->rank();
  const auto used = exchange_.compressor->encode(exchange_.mine, 1.0, 1.0, payload(me));
  if (!used) return used.error();
  RIVULET_CHECK(used.value() == payload(me).size(), "a compressor of fixed size made another one");
  const auto header =
      encode_header({exchange_.view, exchange_.round, exchange_.compressor_entry->wire_id, used.value()});
  std::ranges::copy(header, messages_[me].bytes.begin());
  return ok();
}

void EarlyGather::post_ahead() {
  for (std::uint32_t k = 1; k < transport_->world(); ++k) {
    const std::uint32_t peer = (transport_->rank() + k) % transport_->world();
    SpeculativeMessage& message = messages_[peer];
    if (message.posted) continue;
    message.ticket = transport_->receive_ahead(peer, Lane::speculative, message.bytes);
    message.posted = true;
  }
}

Status EarlyGather::begin(Transport&, const Exchange& exchange) {
  exchange_ = exchange;
  forgets_ = false;
  next_ = 0;
  std::memset(exchange.agreed.host_bytes().data(), 0, exchange.agreed.bytes());
  for (std::uint32_t rank = 0; rank < messages_.size(); ++rank) expect(rank, exchange.weights[rank] > 0);
  return ok();
}

void EarlyGather::give_up(std::span<const std::uint32_t> rows) {
  forgets_ = true;
  next_ = 0;
  for (std::uint32_t rank = 0; rank < messages_.size(); ++rank) expect(rank, rows[rank] > 0);
}

void EarlyGather::expect(std::uint32_t rank, bool something) {
  SpeculativeMessage& message = messages_[rank];
  message.expected = something;
  message.here = false;
  if (something && rank != transport_->rank()) transport_->promote(message.ticket);
}

Progress EarlyGather::poll() {
  if (failed_) return Progress::failed;
  for (std::uint32_t rank = 0; rank < messages_.size(); ++rank)
    if (receive_from(rank) == Progress::failed) return Progress::failed;
  for (; next_ < messages_.size(); ++next_)
    if (const Progress p = use_next(); p != Progress::done) return p;
  const Progress p = finish_all(*transport_, sends_);
  if (p == Progress::failed) return fail(transport_->error());
  if (p == Progress::done) post_ahead();
  return p;
}

/// What is wrong with what came is found out also while a lower rank is silent.
Progress EarlyGather::receive_from(std::uint32_t rank) {
  SpeculativeMessage& message = messages_[rank];
  if (!message.expected || message.here) return Progress::done;
  if (rank != transport_->rank()) {
    const Progress p = transport_->poll(message.ticket);
    if (p == Progress::failed) return fail(transport_->error());
    if (p == Progress::pending) return p;
    message.posted = false;
    const auto opened = open_header(exchange_, rank, message.bytes, payload(rank).size());
    if (!opened) return fail(opened.error());
  }
  message.here = true;
  return Progress::done;
}

Progress EarlyGather::use_next() {
  const SpeculativeMessage& message = messages_[next_];
  if (!message.expected) return Progress::done;
  if (!message.here) return Progress::pending;
  if (forgets_) return Progress::done;
  const auto added =
      add_contribution(exchange_, Weighing::by_receiver, next_, payload(next_), exchange_.agreed);
  return added ? Progress::done : fail(added.error());
}

Progress EarlyGather::fail(Error error) {
  failed_ = true;
  error_ = std::move(error);
  return Progress::failed;
}

}  // namespace

std::unique_ptr<SpeculativeAggregation> make_speculative_gather() {
  return std::make_unique<EarlyGather>();
}

}  // namespace rivulet::sync
