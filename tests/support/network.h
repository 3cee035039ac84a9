#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"

namespace rivulet::testing {

struct NetworkOptions {
  int nodes = 2;
  double bits_per_second = 40e6;  ///< each way on each node's link
  /// Addresses 198.18.x.y (RFC 2544), for Gloo lets the higher of two addresses dial: these dial 127.0.0.1.
  bool above_loopback = false;
};

/// `nodes` network namespaces, each with one shaped link (veth, token bucket, Ethernet MTU) into a bridge of
/// this machine. Processes get in by ProcessOptions::network_namespace; the test itself and a broker stay
/// outside and are reached at host_address(). Needs root. Everything is removed at the end.
class Network {
 public:
  /// Errors: unavailable (not root, `ip` or `tc` missing, the kernel refuses).
  static Result<std::unique_ptr<Network>> create(const NetworkOptions& options = {});
  ~Network();
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;

  [[nodiscard]] std::string namespace_of(int node) const;
  [[nodiscard]] std::string address_of(int node) const;  ///< 10.x.y.(node+2), or 198.
  [[nodiscard]] std::string host_address() const;  ///< 10.x.y.1, or 198., this machine as the nodes see it
  /// What the token bucket of such a link holds.
  static std::size_t burst_of_link(double bits_per_second);
  /// Changes the rate of one node's link, both ways.
  Status set_rate(int node, double bits_per_second);
  /// Pulls the cable of one node, or plugs it in again.
  Status set_connected(int node, bool connected);

 private:
  explicit Network(int number, NetworkOptions options);
  Status build();
  Status build_node(int node);
  [[nodiscard]] std::string name(const std::string& part) const;

  int number_;  // tells concurrent networks apart, in names and addresses
  NetworkOptions options_;
};

}  // namespace rivulet::testing
