#include <doctest/doctest.h>

#include "core/clock.h"
#include "tests/support/network.h"
#include "tests/support/process.h"
#include "tests/support/wait.h"

using namespace rivulet;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

constexpr const char* server_script =
    "import socket,sys\n"
    "s=socket.create_server((sys.argv[1],int(sys.argv[2])))\n"
    "print('listening',flush=True)\n"
    "c,_=s.accept()\n"
    "n=0\n"
    "while True:\n"
    "  d=c.recv(65536)\n"
    "  if not d: break\n"
    "  n+=len(d)\n"
    "c.sendall(b'x')\n"
    "print('received',n,flush=True)\n";

constexpr const char* client_script =
    "import socket,sys,time\n"
    "c=socket.create_connection((sys.argv[1],int(sys.argv[2])),5)\n"
    "t=time.monotonic()\n"
    "c.sendall(b'a'*int(sys.argv[3]))\n"
    "c.shutdown(socket.SHUT_WR)\n"
    "c.settimeout(30)\n"
    "c.recv(1)\n"
    "print(time.monotonic()-t)\n";

/// Seconds to send `bytes` from node 0 to node 1.
double transfer_seconds(const Network& network, int bytes) {
  const std::string port = std::to_string(free_port());
  const auto server =
      Process::start({.command = {"python3", "-c", server_script, network.address_of(1), port},
                      .network_namespace = network.namespace_of(1)});
  REQUIRE_MESSAGE(server, server.error().message);
  REQUIRE(server.value()->wait_for_output("listening", 10s));
  const RunOutput client =
      run({.command = {"python3", "-c", client_script, network.address_of(1), port, std::to_string(bytes)},
           .network_namespace = network.namespace_of(0)},
          60s);
  INFO(client.errors);
  REQUIRE(client.status.code == 0);
  CHECK(server.value()->wait_for_output("received " + std::to_string(bytes), 10s));
  return std::stod(client.output);
}

}  // namespace

TEST_CASE("Support: a shaped network has the rate it was given, and a pulled cable is silent") {
  const auto made = Network::create({.nodes = 2, .bits_per_second = 40e6});
  REQUIRE_MESSAGE(made, made.error().message);
  Network& network = *made.value();
  // 2 MB at 40 Mbit/s: 0.4 s, plus headers and slow start; unshaped it takes a millisecond.
  const double at_40 = transfer_seconds(network, 2'000'000);
  CHECK(at_40 > 0.38);
  CHECK(at_40 < testing::deadline_slack * 1.5);
  REQUIRE(network.set_rate(1, 10e6));
  CHECK(transfer_seconds(network, 2'000'000) > 1.5);

  const std::vector<std::string> ping = {"python3", "-c", client_script, network.address_of(1), "9", "1"};
  REQUIRE(network.set_connected(1, false));
  const RunOutput cut = run({.command = ping, .network_namespace = network.namespace_of(0)}, 20s);
  CHECK(cut.errors.find("refused") == std::string::npos);
  REQUIRE(network.set_connected(1, true));
  const RunOutput back = run({.command = ping, .network_namespace = network.namespace_of(0)}, 20s);
  CHECK(back.errors.find("refused") != std::string::npos);
}

TEST_CASE("Support: two networks live side by side, and nothing of them is left") {
  std::string space;
  {
    const auto first = Network::create({.nodes = 1});
    const auto second = Network::create({.nodes = 3, .bits_per_second = 1e9});
    REQUIRE(first);
    REQUIRE_MESSAGE(second, second.error().message);
    CHECK(first.value()->host_address() != second.value()->host_address());
    CHECK(transfer_seconds(*second.value(), 2'000'000) < testing::deadline_slack * 0.3);
    space = second.value()->namespace_of(2);
    CHECK(run({.command = {"ip", "netns", "list"}}, 5s).output.find(space) != std::string::npos);
  }
  CHECK(run({.command = {"ip", "netns", "list"}}, 5s).output.find(space) == std::string::npos);
  CHECK(run({.command = {"ip", "link"}}, 5s).output.find(space.substr(0, space.size() - 2)) ==
        std::string::npos);
}
