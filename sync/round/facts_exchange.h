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

/// The first half of a round: everybody's facts, and the round that everybody makes of them. Private to
/// SyncSession; owner: the train thread. Nothing waits but wait().
class FactsExchange {
 public:
  struct Parts {
    Transport& transport;
    const ViewSpec& view;
    const policy::PolicyConfig& config;
    const policy::Controllers& controllers;
    std::size_t head_bytes = facts_head_bytes;  ///< with the measurements of the view's controllers
  };
  virtual ~FactsExchange() = default;
  /// The round that the first facts follow.
  virtual std::shared_ptr<const Round> first(std::vector<policy::ControllerMemory> memory) = 0;
  /// One message: head, section, if it fits into its room, and `payload`; room and payload are as long as
  /// expect() has said, on all devices. A longer section follows on its own. `peers`: from when on their
  /// silence counts; peers_are_due() makes it so later.
  virtual void begin(std::vector<std::byte> head, std::vector<std::byte> section,
                     std::span<const std::byte> payload, Peers peers) = 0;
  virtual void peers_are_due() = 0;
  /// Somebody's facts of the round that begin() would enter are here. Never waits.
  [[nodiscard]] virtual bool peer_entered() = 0;
  /// ... of a device that asks the others to come (flag_early). Never waits.
  [[nodiscard]] virtual bool peer_called() = 0;
  virtual Progress poll() = 0;
  /// While poll() is pending: as Transport::wait() for what is needed next.
  virtual bool wait() { return false; }
  /// After done: the round that follows `last`. Errors: protocol, diverged (what came cannot be of one
  /// round).
  virtual Result<std::shared_ptr<const Round>> finish(const std::shared_ptr<const Round>& last) = 0;
  /// After finish(): receives for the next round are posted, with these many bytes for a section behind each
  /// head (section_room()), and of payload behind that.
  virtual void expect(std::size_t section_bytes, std::size_t payload_bytes) = 0;
  /// Until the next begin(): the sum of the payloads that came with the facts; to be read only. Errors: as
  /// add_contribution().
  virtual Result<GradientView> add_up(const Exchange& exchange) = 0;
};

/// As the transport can.
std::unique_ptr<FactsExchange> make_facts_exchange(const FactsExchange::Parts& parts);
/// One message from each to each.
std::unique_ptr<FactsExchange> make_message_facts(const FactsExchange::Parts& parts);
/// One object for all ranks, who share the round that follows, too. The transport must gather.
std::unique_ptr<FactsExchange> make_gathered_facts(const FactsExchange::Parts& parts);

/// Room for a section beside the head: for the rows of each own step, of one partition. With more there is no
/// room.
std::size_t section_room(const policy::Schedule& next);

std::vector<std::byte> message_of(std::vector<std::byte> head, std::span<const std::byte> section,
                                  std::size_t room, std::span<const std::byte> payload);

/// What came as a head is of a device that asks the others to come. Of bytes that are no head: not.
bool calls(std::span<const std::byte> head);
/// Everything that must be equal before anybody acts on the table. Errors: protocol, diverged.
Status check_table(const FactsTable& table, const ViewSpec& view);
/// Errors: protocol (names the device).
Status read_head(std::span<const std::byte> bytes, const ViewSpec& view, std::uint32_t rank,
                 FactsTable& table);
Status read_section(std::span<const std::byte> bytes, const ViewSpec& view, std::uint32_t rank,
                    FactsTable& table);
/// The round that a table makes of the last one.
std::shared_ptr<const Round> next_round(FactsTable table, const Round& last,
                                        const FactsExchange::Parts& parts);

}  // namespace rivulet::sync
