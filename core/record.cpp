#include "core/record.h"

namespace rivulet {

std::string_view name_of(DropReason reason) noexcept {
  switch (reason) {
    case DropReason::tombstone: return "tombstone";
    case DropReason::oversize: return "oversize";
    case DropReason::malformed: return "malformed";
    case DropReason::missing_field: return "missing_field";
    case DropReason::wrong_shape: return "wrong_shape";
    case DropReason::wrong_type: return "wrong_type";
    case DropReason::nonfinite_value: return "nonfinite_value";
    case DropReason::bad_label: return "bad_label";
    case DropReason::nonfinite_batch: return "nonfinite_batch";
    case DropReason::truncated: return "truncated";
    case DropReason::filtered: return "filtered";
    case DropReason::context: return "context";
    case DropReason::expired: return "expired";
  }
  return "unknown";
}

}  // namespace rivulet
