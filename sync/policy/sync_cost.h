#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sync/policy/controller.h"

/// Cost of synchronization, for controllers that choose how to synchronize. Pure.
namespace rivulet::sync::policy {

/// Returns the collective that sends the fewest bytes, if the saving outweighs its additional phases.
/// `payload_bytes`: payload size of one device.
std::string_view cheapest_collective(std::size_t world, std::string_view compressor, double payload_bytes);

/// Payloads that a device sends per synchronization with this collective.
double payloads_sent(std::string_view collective, std::size_t world);

/// Compressor for a controller that chooses this keep ratio.
std::string_view compressor_for(double keep);

/// Sets compressor, keep ratio and payload size of the next round's contributions. Changes nothing for an
/// unknown compressor.
void compress_with(const PolicyConfig& config, std::string_view compressor, double keep, Schedule& next);

/// Returns the same settings as a Way, for the contributions of this round if it is gated.
Way way_of(const PolicyConfig& config, std::size_t world, std::string_view compressor, double keep);

/// Bytes at a device's network interface per synchronization with this keep ratio: facts, payloads, TCP/IP
/// overhead and unseen_bytes(). `facts_bytes`: size of one device's facts.
double sync_bytes(const PolicyConfig& config, std::size_t world, double keep, double facts_bytes);
double sync_bytes(const Way& way, std::size_t world, double facts_bytes);
/// Bytes at the interface for the bytes passed to the transport in one synchronization.
double wire_bytes(double transport_bytes, std::size_t world);
/// Additional bytes per synchronization: Gloo's handshake before each message, in separate segments. With
/// standing_bytes_per_second, explains the difference between estimate and interface counter (measured at the
/// sockets of four devices: bench/shaped budget).
double unseen_bytes(const Way& way, std::size_t world);
/// Bytes per second at the interface without any synchronization: polling of the control topic.
constexpr double standing_bytes_per_second = 110;

/// Mean share of a step's time that devices spend computing. Waiting for peers costs nothing while a device
/// waits for rows anyway.
double busy_share(const FactsTable& table, double step_seconds);

}  // namespace rivulet::sync::policy
