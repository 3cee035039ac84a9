#pragma once
#include <sys/socket.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

/// What Gloo publishes for one rank, and how an advertised address is put into it.
///
///   length of host name, 8 | host name | length of address, 8 | sockaddr_storage, 128 | sequence, 8 | pair
///   numbers
///
/// Gloo lets the side with the higher own address dial and the other listen, each comparing its own local
/// address with the one it was given. Behind address translation the two can disagree, so the choice is made
/// here, for both sides alike, and each is given an address that leads it to the choice.
namespace rivulet::sync::gloo_door {

using Blob = std::vector<std::uint8_t>;

/// Where the sockaddr_storage of a blob is; empty if the layout is not the one above.
std::optional<sockaddr_storage> address_in(const Blob& blob);

/// Is everything there that Gloo, which checks nothing, will read of it in a group of `world`?
bool complete(const Blob& blob, std::uint32_t world);

/// The same, of bytes that were all written here: of an address Gloo sets what it needs and leaves the rest
/// as the memory was, which is nobody else's business. The blob is complete().
Blob made_anew(const Blob& blob, std::uint32_t world);

/// What connections to the rank begin with, one number for each rank of `world`: replaced by what `instead`
/// makes of it. The blob is complete().
Blob with_numbers(Blob blob, std::uint32_t world, const std::function<std::int64_t(std::int64_t)>& instead);

/// Ways in which Gloo prints an address in messages ("[ip]:port", port in either byte order).
std::vector<std::string> printed(const sockaddr_storage& address);

/// Adds the address that peers should dial (empty = the one in the blob) behind the blob.
Blob seal(Blob blob, const std::string& advertise);

struct Sealed {
  Blob blob;
  std::string advertise;
};
std::optional<Sealed> unseal(const Blob& value);

/// The blob to hand to Gloo on rank `me` for rank `peer`. Errors: invalid_config (no side can dial the
/// other), protocol (a blob of another layout).
Result<Blob> blob_for(std::uint32_t me, const Sealed& mine, std::uint32_t peer, const Sealed& theirs);

}  // namespace rivulet::sync::gloo_door
