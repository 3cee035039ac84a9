#include "tests/support/network.h"

#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "tests/support/process.h"

namespace rivulet::testing {
namespace {

using namespace std::chrono_literals;

/// Runs one command; words are separated by spaces.
Status execute(const std::string& line) {
  std::istringstream words(line);
  ProcessOptions options;
  for (std::string word; words >> word;) options.command.push_back(word);
  options.merge_errors = true;
  const RunOutput result = run(options, 10s);
  if (result.status.code == 0) return ok();
  return Error{ErrorCode::unavailable, line + ": " + result.output + result.errors};
}

Status execute_all(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    Status status = execute(line);
    if (!status) return status;
  }
  return ok();
}

std::string bits(double bits_per_second) {
  return std::to_string(static_cast<long long>(bits_per_second)) + "bit";
}

/// The bucket has a queue of 200 ms, minimum 48 kB, as routers have.
std::string token_bucket(double bits_per_second) {
  const auto burst = Network::burst_of_link(bits_per_second);
  const auto queue =
      burst + std::max<std::size_t>(48'000, static_cast<std::size_t>(bits_per_second / 8 * 0.2));
  return "tbf rate " + bits(bits_per_second) + " burst " + std::to_string(burst) + " limit " +
         std::to_string(queue);
}

}  // namespace

// A bucket of 10 ms, so that the rate limits and not the timer, with a minimum of two packets. A larger one
// would carry small messages without delay.
std::size_t Network::burst_of_link(double bits_per_second) {
  return std::max<std::size_t>(3'100, static_cast<std::size_t>(bits_per_second / 8 * 0.01));
}

Network::Network(int number, NetworkOptions options) : number_(number), options_(options) {}

Result<std::unique_ptr<Network>> Network::create(const NetworkOptions& options) {
  if (::geteuid() != 0) {
    return Error{ErrorCode::unavailable, "network namespaces need root (scripts/test gets it by itself)"};
  }
  if (options.nodes < 1 || options.nodes > 250) return Error{ErrorCode::usage, "nodes must be in 1..250"};
  Error last;
  for (int i = 0; i < 50; ++i) {  // another test program may use the same number
    const int number = (static_cast<int>(::getpid()) + i * 257) % 4096;
    std::unique_ptr<Network> network(new Network(number, options));
    const Status bridge = execute("ip link add " + network->name("b") + " type bridge");
    if (!bridge) {
      last = bridge.error();
      network->options_.nodes = -1;  // we own nothing with this number: the destructor must not touch it
      if (last.message.find("exists") == std::string::npos) return last;
      continue;
    }
    const Status built = network->build();
    if (!built) return built.error();
    return network;
  }
  return last;
}

Status Network::build() {
  Status bridge = execute_all(
      {"ip address add " + host_address() + "/24 dev " + name("b"), "ip link set " + name("b") + " up"});
  if (!bridge) return bridge;
  for (int node = 0; node < options_.nodes; ++node) {
    Status built = build_node(node);
    if (!built) return built;
  }
  return ok();
}

Status Network::build_node(int node) {
  const std::string space = namespace_of(node);
  const std::string outer = name("o" + std::to_string(node));
  const std::string inner = name("i" + std::to_string(node));
  const std::string inside = "ip -n " + space + " ";
  Status linked = execute_all({"ip netns add " + space,
                               "ip link add " + outer + " type veth peer name " + inner + " netns " + space,
                               "ip link set " + outer + " master " + name("b") + " up",
                               inside + "address add " + address_of(node) + "/24 dev " + inner,
                               inside + "link set " + inner + " up", inside + "link set lo up"});
  if (!linked) return linked;
  return set_rate(node, options_.bits_per_second);
}

Network::~Network() {
  if (options_.nodes < 0) return;
  for (int node = 0; node < options_.nodes; ++node) {
    (void)execute("ip link del " + name("o" + std::to_string(node)));
    (void)execute("ip netns del " + namespace_of(node));
  }
  (void)execute("ip link del " + name("b"));
}

std::string Network::name(const std::string& part) const {
  return "rvt" + std::to_string(number_) + part;  // the kernel's limit is 15 characters
}

std::string Network::namespace_of(int node) const {
  return name("n" + std::to_string(node));
}

std::string Network::host_address() const {
  if (options_.above_loopback)
    return "198." + std::to_string(18 + number_ / 256 % 2) + "." + std::to_string(number_ % 256) + ".1";
  return "10." + std::to_string(192 + number_ / 256) + "." + std::to_string(number_ % 256) + ".1";
}

std::string Network::address_of(int node) const {
  const std::string host = host_address();
  return host.substr(0, host.size() - 1) + std::to_string(node + 2);
}

// Shapes both ends, because a queue forms only where packets leave.
Status Network::set_rate(int node, double bits_per_second) {
  const std::string outer = "tc qdisc replace dev " + name("o" + std::to_string(node));
  const std::string inner =
      "tc -n " + namespace_of(node) + " qdisc replace dev " + name("i" + std::to_string(node));
  for (const std::string& device : {outer, inner}) {
    Status shaped = execute(device + " root " + token_bucket(bits_per_second));
    if (!shaped) return shaped;
  }
  return ok();
}

Status Network::cut(int node, Direction direction) {
  const std::string end =
      direction == Direction::out
          ? "tc -n " + namespace_of(node) + " qdisc replace dev " + name("i" + std::to_string(node))
          : "tc qdisc replace dev " + name("o" + std::to_string(node));
  return execute(end + " root blackhole");
}

Status Network::set_connected(int node, bool connected) {
  return execute("ip link set " + name("o" + std::to_string(node)) + (connected ? " up" : " down"));
}

}  // namespace rivulet::testing
