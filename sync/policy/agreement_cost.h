#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sync/policy/controller.h"

/// What it costs to agree, for controllers that choose how. Pure.
namespace rivulet::sync::policy {

/// The collective that sends the fewest bytes, where it saves enough of them for its phases. `payload_bytes`:
/// of one device.
std::string_view cheapest_collective(std::size_t world, std::string_view compressor, double payload_bytes);

/// Payloads that leave a device in one agreement, by a collective's name.
double payloads_sent(std::string_view collective, std::size_t world);

/// The compressor of a controller that chooses this share of the parameters.
std::string_view compressor_for(double keep);

/// The next round's contributions go through this compressor, and this share of them: sets all that follows.
/// Nothing is set for a name that no compressor has.
void compress_with(const PolicyConfig& config, std::string_view compressor, double keep, Schedule& next);

/// ... those of this round, in a gated one.
Way way_of(const PolicyConfig& config, std::size_t world, std::string_view compressor, double keep);

/// Bytes that leave a device's interface in one agreement on this share of the parameters: facts, payloads,
/// what TCP and IP put around them, and the unseen. `facts_bytes`: of one device.
double agreement_bytes(const PolicyConfig& config, std::size_t world, double keep, double facts_bytes);
double agreement_bytes(const Way& way, std::size_t world, double facts_bytes);
/// What leaves the interface for what was given to the transport in one agreement.
double wire_bytes(double transport_bytes, std::size_t world);
/// ... and besides, in one agreement: what Gloo's ends say to each other before a message goes, in segments
/// of their own. With the next, what is between an estimate and the interface's counter (measured at the
/// sockets of four devices: bench/shaped budget).
double unseen_bytes(const Way& way, std::size_t world);
/// Bytes a second that leave the interface whether the group agrees or not: the control topic is asked for
/// news.
constexpr double standing_bytes_per_second = 110;

/// Of their time, what devices compute. Who waits for rows loses nothing by waiting for others.
double busy_share(const FactsTable& table, double step_seconds);

}  // namespace rivulet::sync::policy
