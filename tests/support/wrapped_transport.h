#pragma once
#include <memory>
#include <utility>

#include "sync/transport/transport.h"

namespace rivulet::testing {

/// Forwards to another transport; tests override the calls that they observe or spoil.
struct WrappedTransport : sync::Transport {
  explicit WrappedTransport(std::unique_ptr<sync::Transport> transport) : inner(std::move(transport)) {}
  [[nodiscard]] std::uint32_t rank() const noexcept override { return inner->rank(); }
  [[nodiscard]] std::uint32_t world() const noexcept override { return inner->world(); }
  Progress connected() override { return inner->connected(); }
  sync::Ticket send(std::uint32_t peer, sync::Lane lane, std::span<const std::byte> bytes) override {
    return inner->send(peer, lane, bytes);
  }
  sync::Ticket receive(std::uint32_t peer, sync::Lane lane, std::span<std::byte> bytes) override {
    return inner->receive(peer, lane, bytes);
  }
  sync::Ticket receive_ahead(std::uint32_t peer, sync::Lane lane, std::span<std::byte> bytes) override {
    return inner->receive_ahead(peer, lane, bytes);
  }
  sync::Ticket send_ahead(std::uint32_t peer, sync::Lane lane, std::span<const std::byte> bytes) override {
    return inner->send_ahead(peer, lane, bytes);
  }
  void promote(sync::Ticket ticket) override { inner->promote(ticket); }
  Progress poll(sync::Ticket ticket) override { return inner->poll(ticket); }
  bool wait(sync::Ticket ticket) override { return inner->wait(ticket); }
  bool healthy() override { return inner->healthy(); }
  [[nodiscard]] const Error& error() const override { return inner->error(); }
  [[nodiscard]] int lost_rank() const noexcept override { return inner->lost_rank(); }
  [[nodiscard]] sync::TransportCounters counters() const noexcept override { return inner->counters(); }
  void close() noexcept override { inner->close(); }
  std::unique_ptr<sync::Transport> inner;
};

}  // namespace rivulet::testing
