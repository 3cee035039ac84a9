#include "sync/message/plan.h"

#include "core/digest.h"
#include "sync/message/field_bytes.h"

namespace rivulet::sync::policy {

std::string_view name_of(Mode mode) noexcept {
  switch (mode) {
    case Mode::gradients: return "gradients";
    case Mode::delta: return "delta";
    case Mode::defer: return "defer";
    case Mode::idle: return "idle";
    case Mode::skip: return "skip";
  }
  return "unknown";
}

std::string_view name_of(Retreat retreat) noexcept {
  switch (retreat) {
    case Retreat::none: return "none";
    case Retreat::roll_back: return "roll_back";
    case Retreat::give_up: return "give_up";
  }
  return "unknown";
}

std::uint64_t hash_of(const RoundPlan& plan, std::uint64_t table_hash) {
  std::vector<std::byte> bytes;
  FieldWriter writer(bytes);
  writer.put(table_hash);
  writer.put(plan.now);
  writer.put(plan.next);
  return digest_of(bytes).low;
}

}  // namespace rivulet::sync::policy
