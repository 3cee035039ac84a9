#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/result.h"
#include "sync/collective/aggregation.h"
#include "sync/message/facts.h"
#include "sync/policy/arbiter.h"
#include "sync/round/round.h"
#include "sync/transport/transport.h"

namespace rivulet::sync {

/// The first half of a round: exchanges facts, and computes the round from them. Private to SyncSession.
/// Owner: the train thread. Only wait() waits.
class FactsExchange {
 public:
  struct Parts {
    Transport& transport;
    const ViewSpec& view;
    const policy::PolicyConfig& config;
    const policy::Controllers& controllers;
    std::size_t head_bytes = facts_head_bytes;  ///< size including the measurements of the view's controllers
  };
  virtual ~FactsExchange() = default;
  /// The round before the first facts.
  virtual std::shared_ptr<const Round> first(std::vector<policy::ControllerMemory> memory) = 0;
  /// Sends one message: head, section if it fits into its room, and `payload`. Room and payload have the
  /// lengths given to expect() on all devices. A longer section follows separately. `peers`: when their
  /// silence starts to count; peers_are_due() starts it later.
  virtual void begin(std::vector<std::byte> head, std::vector<std::byte> section,
                     std::span<const std::byte> payload, Peers peers) = 0;
  virtual void peers_are_due() = 0;
  /// Whether a peer's facts of the next round have arrived. Never waits.
  [[nodiscard]] virtual bool peer_entered() = 0;
  /// Whether a peer requests an early synchronization (flag_early). Never waits.
  [[nodiscard]] virtual bool peer_requested_sync() = 0;
  virtual Progress poll() = 0;
  /// While poll() is pending: as Transport::wait(), for the next missing part.
  virtual bool wait() { return false; }
  /// Call after done. Returns the round that follows `last`. Errors: protocol, diverged (the facts cannot
  /// belong to one round).
  virtual Result<std::shared_ptr<const Round>> finish(const std::shared_ptr<const Round>& last) = 0;
  /// Call after finish(). Posts receives for the next round, with room for a section after each head
  /// (section_room()), followed by the payload.
  virtual void expect(std::size_t section_bytes, std::size_t payload_bytes) = 0;
  /// Until the next begin(): the sum of the payloads received with the facts; read-only. Errors: as
  /// add_contribution().
  virtual Result<GradientView> add_up(const Exchange& exchange) = 0;
};

/// Chooses the implementation by the transport's capabilities.
std::unique_ptr<FactsExchange> make_facts_exchange(const FactsExchange::Parts& parts);
/// One message between each pair of ranks.
std::unique_ptr<FactsExchange> make_message_facts(const FactsExchange::Parts& parts);
/// One shared object for all ranks, which also share the resulting round. The transport must support
/// gathering.
std::unique_ptr<FactsExchange> make_gathered_facts(const FactsExchange::Parts& parts);

/// Room in bytes for a section after the head: enough for the rows of each local step if the device reads one
/// partition.
std::size_t section_room(const policy::Schedule& next);

std::vector<std::byte> message_of(std::vector<std::byte> head, std::span<const std::byte> section,
                                  std::size_t room, std::span<const std::byte> payload);

/// Whether this head requests an early synchronization. False for invalid heads.
bool requests_sync(std::span<const std::byte> head);
/// Checks everything that must be equal before the table is used. Errors: protocol, diverged; both blame the
/// minority, or nobody if there is none.
Status check_table(const FactsTable& table, const ViewSpec& view);
/// Errors: protocol (names and blames the device).
Status read_head(std::span<const std::byte> bytes, const ViewSpec& view, std::uint32_t rank,
                 FactsTable& table);
Status read_section(std::span<const std::byte> bytes, const ViewSpec& view, std::uint32_t rank,
                    FactsTable& table);
/// The round after `last`, with this table.
std::shared_ptr<const Round> next_round(FactsTable table, const Round& last,
                                        const FactsExchange::Parts& parts);

}  // namespace rivulet::sync
