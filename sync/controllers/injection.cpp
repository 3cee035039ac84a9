#include "sync/controllers/injection.h"

#include <algorithm>
#include <cmath>

namespace rivulet::sync::policy {

void inject_rows(const PolicyConfig& config, const std::vector<bool>& sends, double share, double per_row,
                 Schedule& next) {
  Injection& injected = next.injection.emplace();
  injected.per_row = per_row;
  injected.rows.assign(next.rows.size(), 0);
  for (std::size_t rank = 0; rank < next.rows.size(); ++rank) {
    std::uint32_t& rows = next.rows[rank];
    if (rows > 0)
      rows = std::max(
          {1U, std::min(config.min, rows), static_cast<std::uint32_t>(std::lround(rows / (1 + per_row)))});
    if (!sends[rank]) continue;
    // A stream without requested rows sends about one row per step.
    const double rows_sent = std::ceil(share * std::max(1.0, static_cast<double>(rows)) * next.steps());
    injected.rows[rank] = static_cast<std::uint32_t>(std::min<double>(injected_rows_max, rows_sent));
  }
}

}  // namespace rivulet::sync::policy
