#include "tests/support/spoiled_moves.h"

#include <cstring>
#include <limits>
#include <vector>

namespace rivulet::testing {
namespace {

class SpoiledTransport final : public sync::Transport {
 public:
  SpoiledTransport(std::unique_ptr<sync::Transport> inner, MoveFault fault)
      : inner_(std::move(inner)), fault_(fault) {}
  [[nodiscard]] std::uint32_t rank() const noexcept override { return inner_->rank(); }
  [[nodiscard]] std::uint32_t world() const noexcept override { return inner_->world(); }
  Progress connected() override { return inner_->connected(); }
  sync::Ticket send(std::uint32_t peer, sync::Lane lane, std::span<const std::byte> bytes) override {
    return cut_ ? sync::Ticket{} : inner_->send(peer, lane, bytes);
  }
  sync::Ticket receive(std::uint32_t peer, sync::Lane lane, std::span<std::byte> bytes) override {
    return cut_ ? sync::Ticket{} : inner_->receive(peer, lane, bytes);
  }
  sync::Ticket receive_ahead(std::uint32_t peer, sync::Lane lane, std::span<std::byte> bytes) override {
    return cut_ ? sync::Ticket{} : inner_->receive_ahead(peer, lane, bytes);
  }
  /// Moved rows leave so.
  sync::Ticket send_ahead(std::uint32_t peer, sync::Lane lane, std::span<const std::byte> bytes) override {
    const bool now = lane == sync::Lane::moves && ++moves_ == 3;
    if (now && fault_ != MoveFault::cut) return inner_->send_ahead(peer, lane, spoiled(bytes));
    if (now) {
      cut_ = true;
      lost_ = static_cast<int>(peer);
      inner_->close();
    }
    return cut_ ? sync::Ticket{} : inner_->send_ahead(peer, lane, bytes);
  }
  void promote(sync::Ticket ticket) override {
    if (!cut_) inner_->promote(ticket);
  }
  Progress poll(sync::Ticket ticket) override { return cut_ ? Progress::failed : inner_->poll(ticket); }
  bool healthy() override { return !cut_ && inner_->healthy(); }
  [[nodiscard]] const Error& error() const override { return cut_ ? error_ : inner_->error(); }
  [[nodiscard]] int lost_rank() const noexcept override { return cut_ ? lost_ : inner_->lost_rank(); }
  [[nodiscard]] sync::TransportCounters counters() const noexcept override { return inner_->counters(); }
  void close() noexcept override { inner_->close(); }

 private:
  std::span<const std::byte> spoiled(std::span<const std::byte> bytes) {
    constexpr std::size_t tag_bytes = 48;
    sent_.assign(bytes.begin(), bytes.end());
    const bool infinite = fault_ == MoveFault::infinite;
    const float strange = infinite ? std::numeric_limits<float>::infinity() : 1e6F;
    std::memcpy(sent_.data() + (infinite ? tag_bytes : sent_.size() - sizeof strange), &strange,
                sizeof strange);
    return sent_;
  }

  std::unique_ptr<sync::Transport> inner_;
  const MoveFault fault_;
  std::vector<std::byte> sent_;
  int moves_ = 0;
  bool cut_ = false;
  int lost_ = -1;
  const Error error_{ErrorCode::peer_lost, "planted cut while rows move"};
};

}  // namespace

sync::Connect spoil_third_move(sync::Connect usual, MoveFault fault) {
  return [usual = std::move(usual), fault](const sync::ViewSpec& spec, sync::AddressBook& book,
                                           Wake& wake) -> Result<std::unique_ptr<sync::Transport>> {
    auto inner = usual(spec, book, wake);
    if (!inner) return inner.error();
    return std::unique_ptr<sync::Transport>(
        std::make_unique<SpoiledTransport>(std::move(inner).value(), fault));
  };
}

}  // namespace rivulet::testing
