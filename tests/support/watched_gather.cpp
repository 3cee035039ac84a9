#include "tests/support/watched_gather.h"

#include <algorithm>
#include <deque>
#include <optional>

#include "core/check.h"
#include "tests/support/kill_board.h"

namespace rivulet::testing {
namespace {

using namespace sync;

constexpr std::size_t piece_bytes = std::size_t{64} * 1024;

/// For one exchange. A message is posted in pieces, on both sides alike.
class WatchedTransport final : public Transport {
 public:
  WatchedTransport(Transport& inner, KillPage& page) : inner_(inner), page_(page) {}
  [[nodiscard]] std::uint32_t rank() const noexcept override { return inner_.rank(); }
  [[nodiscard]] std::uint32_t world() const noexcept override { return inner_.world(); }
  Progress connected() override { return inner_.connected(); }
  Ticket send(std::uint32_t peer, Lane lane, std::span<const std::byte> bytes) override {
    return add({peer, lane, true, {const_cast<std::byte*>(bytes.data()), bytes.size()}});  // only read
  }
  Ticket receive(std::uint32_t peer, Lane lane, std::span<std::byte> bytes) override {
    return add({peer, lane, false, bytes});
  }
  Ticket receive_ahead(std::uint32_t, Lane, std::span<std::byte>) override {
    RIVULET_CHECK(false, "no aggregation receives ahead");
    return {};
  }
  void promote(Ticket) override {}
  Progress poll(Ticket ticket) override {
    for (auto& message : messages_)
      if (advance(message) == Progress::failed) return Progress::failed;
    return messages_[ticket.id - 1].is_done() ? Progress::done : Progress::pending;
  }
  bool wait(Ticket ticket) override {
    const auto& pieces = messages_[ticket.id - 1].pieces;
    return !pieces.empty() && inner_.wait(pieces.front().ticket);
  }
  bool healthy() override { return inner_.healthy(); }
  [[nodiscard]] const Error& error() const override { return inner_.error(); }
  [[nodiscard]] int lost_rank() const noexcept override { return inner_.lost_rank(); }
  [[nodiscard]] TransportCounters counters() const noexcept override { return inner_.counters(); }

 private:
  struct Piece {
    Ticket ticket;
    std::size_t bytes = 0;
  };
  struct Message {
    std::uint32_t peer = 0;
    Lane lane{};
    bool sending = false;
    std::span<std::byte> bytes;
    bool posted = false;
    std::deque<Piece> pieces;  ///< not done yet
    [[nodiscard]] bool is_done() const { return posted && pieces.empty(); }
  };

  Ticket add(Message message) {
    if (message.lane == Lane::payload) page_.total += message.bytes.size();
    messages_.push_back(std::move(message));
    post(messages_.back());
    return {messages_.size()};
  }
  [[nodiscard]] bool held_back(const Message& message) const {
    return message.sending && message.lane == Lane::payload && ((page_.hold_back >> message.peer) & 1U) != 0;
  }
  void post(Message& message) {
    if (message.posted || held_back(message)) return;
    message.posted = true;
    for (auto rest = message.bytes; !rest.empty();) {
      const auto piece = rest.first(std::min(rest.size(), piece_bytes));
      message.pieces.push_back({message.sending ? inner_.send(message.peer, message.lane, piece)
                                                : inner_.receive(message.peer, message.lane, piece),
                                piece.size()});
      rest = rest.subspan(piece.size());
    }
  }
  Progress advance(Message& message) {
    post(message);
    if (!message.posted) return inner_.healthy() ? Progress::pending : Progress::failed;
    while (!message.pieces.empty()) {
      const Progress p = inner_.poll(message.pieces.front().ticket);
      if (p != Progress::done) return p;
      if (message.lane == Lane::payload) page_.sent += message.pieces.front().bytes;
      message.pieces.pop_front();
    }
    return Progress::done;
  }

  Transport& inner_;
  KillPage& page_;
  std::deque<Message> messages_;
};

class WatchedGather final : public Aggregation {
 public:
  explicit WatchedGather(std::unique_ptr<Aggregation> inner) : inner_(std::move(inner)) {}
  Status begin(Transport& transport, const Exchange& exchange) override {
    page_->sent = 0;
    page_->total = 0;
    page_->phase = KillPage::Phase::payload;
    wires_.emplace(transport, *page_);
    return inner_->begin(*wires_, exchange);
  }
  Progress poll() override {
    const Progress p = inner_->poll();
    if (p != Progress::pending) page_->phase = KillPage::Phase::idle;
    return p;
  }
  bool wait() override { return inner_->wait(); }
  [[nodiscard]] const Error& error() const override { return inner_->error(); }

 private:
  const std::shared_ptr<KillPage> page_ = KillBoard::of_this_process();
  std::optional<WatchedTransport> wires_;
  std::unique_ptr<Aggregation> inner_;
};

std::unique_ptr<Aggregation> make_watched_gather() {
  for (const auto* entry : builtin_aggregations())
    if (entry->name == watched_gather.name) return std::make_unique<WatchedGather>(entry->make());
  RIVULET_CHECK(false, "the product has no gather");
  return nullptr;
}

}  // namespace

const sync::AggregationEntry watched_gather{"gather", "test only: gather that can be watched",
                                            &make_watched_gather};

}  // namespace rivulet::testing
