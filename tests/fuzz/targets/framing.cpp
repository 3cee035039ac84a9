// Bytes from a member on a connection of a view: Gloo's framing, before Gloo reads it. Models a Gloo that has
// posted one receive of 16 bytes on each lane, and none on others.
#include <map>

#include "core/check.h"
#include "sync/transport/gloo/frame_check.h"
#include "tests/fuzz/bytes.h"

namespace rivulet::fuzz {
namespace {

using namespace sync;
using namespace sync::gloo_door;

constexpr std::size_t awaited = 16;

/// Ends where the connection would be closed, or at the end of input.
void run(Input input) {
  FrameCheck check;
  std::map<std::uint64_t, int> posted;
  std::uint64_t announced = 0;
  for (int lane = 1; lane < static_cast<int>(lanes_end); ++lane)
    ++posted[static_cast<std::uint64_t>(data_tag(lane, false))];
  const FrameCheck::Posted counts{.receives = posted.size()};
  while (input.size() >= sizeof(Preamble)) {
    const auto p = number_at<Preamble>(input, 0);
    input = input.subspan(sizeof p);
    if (check.refuse(p, counts) != nullptr) return;
    // Gloo's action: writes to the posted receive, or stores an announcement.
    RIVULET_CHECK(p.opcode >= Preamble::message && p.opcode <= Preamble::receive_ready,
                  "Gloo has this opcode");
    RIVULET_CHECK(p.receiver_offset == 0 && is_tag(p.slot), "it is of a lane");
    if (p.opcode != Preamble::message) {
      RIVULET_CHECK(++announced <= 2 * (FrameCheck::announced_most + posted.size()), "Gloo can remember it");
      continue;
    }
    if (posted[p.slot]-- <= 0) return;  // Gloo throws, and Pair::read() catches
    if (FrameCheck::refuse_length(p, awaited) != nullptr) return;
    RIVULET_CHECK(p.length == awaited && p.bytes == sizeof p + awaited, "it fills what awaits it");
    if (input.size() < awaited) return;
    input = input.subspan(awaited);
  }
}

std::vector<Bytes> seeds() {
  const auto slot = static_cast<std::uint64_t>(data_tag(static_cast<int>(Lane::facts), false));
  const auto preamble = [](const Preamble& p) {
    Bytes bytes(sizeof p);
    put_number(std::span(bytes), 0, p);
    return bytes;
  };
  Bytes said = preamble({sizeof(Preamble), Preamble::receive_ready, slot, 0, awaited, 0});
  Bytes sent = preamble({sizeof(Preamble), Preamble::send_ready, slot, 0, awaited, 0});
  append(sent, preamble({sizeof(Preamble) + awaited, Preamble::message, slot, 0, awaited, 0}));
  append(sent, Bytes(awaited));
  Bytes both = said;
  append(both, sent);
  return {said, sent, both};
}

}  // namespace

extern const Target target_framing;
const Target target_framing{"framing", run, seeds};

}  // namespace rivulet::fuzz
