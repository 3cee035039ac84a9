// Shaped links for benchmarks in other languages: network namespaces with separate links, and a real Apache
// Kafka that they reach. Prints one line, HOST:PORT and the names of the namespaces with their addresses, and
// runs until standard input ends. A number on standard input sets the rate of all links in Mbit/s. Needs
// root.
//   build/release/bench_links NODES MBIT        10.192.7.1:9092 rvt7n0=10.192.7.2 rvt7n1=10.192.7.3
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "tests/support/kafka_server.h"
#include "tests/support/network.h"

using namespace rivulet;
using namespace rivulet::testing;

namespace {

/// Prints the reason and returns the exit code.
int failed(const std::string& why) {
  fmt::print(stderr, "bench_links: {}\n", why);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return failed("usage: bench_links NODES MBIT");
  const int nodes = std::atoi(argv[1]);
  auto network = Network::create({.nodes = nodes, .bits_per_second = std::atof(argv[2]) * 1e6});
  if (!network) return failed(network.error().message);
  auto kafka = KafkaServer::start({.host = network.value()->host_address()});
  if (!kafka) return failed(kafka.error().message);
  fmt::print("{}", kafka.value()->brokers());
  for (int node = 0; node < nodes; ++node)
    fmt::print(" {}={}", network.value()->namespace_of(node), network.value()->address_of(node));
  fmt::print("\n");
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    for (int node = 0; node < nodes; ++node) {
      if (Status set = network.value()->set_rate(node, std::atof(line.c_str()) * 1e6); !set)
        return failed(set.error().message);
    }
  }
  return 0;
}
