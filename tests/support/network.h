#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"

namespace rivulet::testing {

struct NetworkOptions {
  int nodes = 2;
  double bits_per_second = 40e6;  ///< in each direction of each node's link
  /// Uses addresses 198.18.x.y (RFC 2544): in Gloo the higher address connects, so these connect to
  /// 127.0.0.1.
  bool above_loopback = false;
};

/// `nodes` network namespaces, each with one shaped link (veth, token bucket, Ethernet MTU) to a bridge of
/// this machine. Processes enter by ProcessOptions::network_namespace. The test and a broker stay outside, at
/// host_address(). Needs root. The destructor removes everything.
class Network {
 public:
  /// Errors: unavailable (not root, `ip` or `tc` missing, rejected by the kernel).
  static Result<std::unique_ptr<Network>> create(const NetworkOptions& options = {});
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  [[nodiscard]] std::string namespace_of(int node) const;
  [[nodiscard]] std::string address_of(int node) const;  ///< 10.x.y.(node+2), or 198.
  [[nodiscard]] std::string host_address() const;  ///< 10.x.y.1, or 198.: this machine as seen by the nodes
  /// Bytes in the token bucket of such a link.
  static std::size_t burst_of_link(double bits_per_second);
  /// Changes the rate of one node's link in both directions.
  Status set_rate(int node, double bits_per_second);
  /// Disconnects or reconnects one node.
  Status set_connected(int node, bool connected);
  enum class Direction : std::uint8_t { out, in };
  /// The link loses all packets of this direction, until the next set_rate().
  Status cut(int node, Direction direction);

 private:
  explicit Network(int number, NetworkOptions options);
  Status build();
  Status build_node(int node);
  [[nodiscard]] std::string name(const std::string& part) const;

  int number_;  // distinguishes concurrent networks in names and addresses
  NetworkOptions options_;
};

}  // namespace rivulet::testing
