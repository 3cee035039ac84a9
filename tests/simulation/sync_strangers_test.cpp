// Groups over a log in virtual time with random non-members, duplicate ids, crashes and returns. No member
// with the group's configuration ends by another's mistake, and the group forms again.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "core/rng.h"
#include "tests/support/effort.h"
#include "tests/support/membership_group.h"

using namespace rivulet;
using namespace rivulet::sync;
using namespace rivulet::sync::membership;
using namespace rivulet::testing;
using namespace std::chrono_literals;

namespace {

const std::vector<std::string> members{"a", "b", "c"};

struct Seen {
  std::uint64_t strangers = 0, twins = 0, deaths = 0, views = 0, rejected = 0, kept = 0;
};

class Schedule {
 public:
  Schedule(std::uint64_t seed, Seen& seen) : rng_(seed), seen_(seen) {
    group_.seed = seed;
    group_.form(members);
  }

  /// The error, or empty.
  std::string run() {
    for (int event = 0; event < 25; ++event) {
      happen();
      group_.run(10ms * static_cast<int>(1 + rng_.below(150)));
      look_after_views();
      if (const auto wrong = ended_member(); !wrong.empty()) return wrong;
    }
    for (const auto& id : members) revive(id);
    group_.run(12s);  // a device that does not fit has ended
    look_after_views();
    group_.run(12s);
    if (const auto wrong = ended_member(); !wrong.empty()) return wrong;
    seen_.views += group_.nodes.at("a").membership->fold().view.number;
    if (!group_.formed(members)) return "the group has not formed";
    for (const auto& [name, node] : group_.nodes)
      if (!is_member(name) && !node.error) return name + " waits still";
    return {};
  }

 private:
  [[nodiscard]] static bool is_member(const std::string& name) {
    return std::find(members.begin(), members.end(), name) != members.end();
  }

  void happen() {
    const auto& id = members[rng_.below(members.size())];
    switch (rng_.below(5)) {
      case 0: return die(id);
      case 1: return revive(id);
      case 2: return stranger();
      case 3: return twin(id);
      default: {  // kills a non-member at any time
        std::erase_if(group_.nodes,
                      [&](const auto& node) { return !is_member(node.first) && rng_.below(2) == 0; });
      }
    }
  }
  /// Never the last one: without a member the group has no side to take.
  void die(const std::string& id) {
    const auto up = std::count_if(members.begin(), members.end(),
                                  [&](const auto& m) { return group_.nodes.contains(m); });
    if (up <= 1 || !group_.nodes.contains(id)) return;
    ++seen_.deaths;
    group_.nodes.erase(id);
  }
  void revive(const std::string& id) {
    if (!group_.nodes.contains(id)) group_.start(id, 3);
  }
  MembershipConfig misfit(const std::string& id) {
    auto config = group_.config(id, rng_.below(4) == 0 ? 4 : 3, rng_.below(2) == 0 ? "50ms" : "100ms");
    if (config.hello.config_hash == "100ms3") config.hello.partitions = {"mnist:a", "mnist:b", "mnist:c"};
    return config;
  }
  void stranger() {
    ++seen_.strangers;
    group_.start(misfit("x"));
  }
  /// A second process with the id of a running member, and the state of another run or another configuration.
  void twin(const std::string& id) {
    const auto live = group_.nodes.find(id);
    if (live == group_.nodes.end()) return;
    const bool foreign = rng_.below(2) == 0;
    auto config = foreign ? group_.config(id, 3) : group_.config(id, 3, "50ms");
    const std::string name = "twin-of-" + id;
    group_.start(config, name);
    if (foreign) group_.nodes.at(name).membership->announce_state({9999, 1}, "d", 10);
    ++seen_.twins;
  }
  /// A device whose view has lost a member detects it.
  void look_after_views() {
    for (auto& [name, node] : group_.nodes) {
      if (!node.view || node.error) continue;
      const auto& in = node.view->members;
      const bool whole = std::all_of(in.begin(), in.end(), [&](const auto& id) {
        const auto peer = group_.nodes.find(id);
        return peer != group_.nodes.end() && peer->second.view &&
               peer->second.view->token == node.view->token;
      });
      if (whole) continue;
      node.view.reset();
      node.membership->leave_view("a peer is lost");
    }
  }
  std::string ended_member() {
    for (const auto& id : members)
      if (const auto node = group_.nodes.find(id); node != group_.nodes.end() && node->second.error)
        return id + " ended: " + node->second.error->message;
    for (auto& [name, node] : group_.nodes) {
      if (!node.error || is_member(name)) continue;
      if (!counted_.insert(node.config.nonce_seed).second) continue;
      ++(node.error->message.find("keeps its place") != std::string::npos ? seen_.kept : seen_.rejected);
      // A second process in the place of a dead member yields to the one that returns.
      const bool twin = name.starts_with("twin") && node.error->code == ErrorCode::superseded;
      if (node.error->code != ErrorCode::invalid_config && !twin) return name + ": " + node.error->message;
    }
    return {};
  }

  Rng rng_;
  Seen& seen_;
  MembershipGroup group_;
  std::set<std::uint64_t> counted_;  ///< nonce seeds of processes known to have ended
};

}  // namespace

TEST_CASE("Strangers: whatever comes and goes, members stay and the group stands again") {
  Seen seen;
  const std::uint64_t first = seed_or(1);
  for (int i = 0; i < repetitions(30, 1000); ++i) {
    const std::uint64_t seed = first + static_cast<std::uint64_t>(i);
    const std::string wrong = Schedule(seed, seen).run();
    REQUIRE_MESSAGE(wrong.empty(), "seed ", seed, ": ", wrong);
  }
  for (const auto n : {seen.strangers, seen.twins, seen.deaths, seen.views, seen.rejected, seen.kept})
    CHECK(n > 30);
}
