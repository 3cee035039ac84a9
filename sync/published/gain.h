#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

#include "sync/coding/gains.h"
#include "sync/policy/controller.h"

/// Compression gains of contributions, for the published gates. Pure.
namespace rivulet::sync::policy {

/// Two definitions published under one name. Their thresholds are not comparable.
enum class GainKind : std::uint8_t {
  squared,    ///< |C(e)|^2 / |e|^2, e: gradient and residual. Used by the papers (GraVAC, ScaDLES)
  unsquared,  ///< |C(e)| / |g|, g: gradient alone. Used by their code. Rises to 1 as the residual fills, even
              ///< with pure noise
};
inline constexpr Key gain_key(std::string_view name, std::string_view text) {
  return {.name = name,
          .type = KeyType::text,
          .text = text,
          .help =
              "definition of the gain: squared = share of the squared norm of gradient plus residual that is "
              "sent (papers); unsquared = norm of the sent part, divided by the norm of the gradient alone "
              "(the papers' code)",
          .choices = "squared | unsquared"};
}

/// Fact fields of a controller that reads gains, for ControllerEntry::fact_fields. The controller must have
/// no other fact fields.
inline constexpr std::array gain_fields{
    FactField{"energy_shares",
              "shares of the squared norm of its contribution that its largest elements hold",
              gain_keeps.size()},
    FactField{"contribution_norm", "norm of its weighted gradient and residual"},
    FactField{"gradient_norm", "norm of its weighted gradient, without residual"},
};

/// Index of the gain fields in Facts::measurements; nothing if no controller needs them.
std::optional<std::size_t> place_of_gains(const Controllers& controllers);

/// Gain if a device sends the largest values, a share `keep`, of its contribution; 0 without contribution.
/// Interpolates linearly between the shares in the facts.
double gain_of(const Inputs& inputs, std::size_t rank, double keep, GainKind kind);
/// Mean gain over the devices with rows; 0 if no device has rows.
double mean_gain(const Inputs& inputs, double keep, GainKind kind);
GainKind gain_kind(std::string_view text);
/// Whether this round has an exchange. Only such rounds count for gains, since the rows of a
/// deferred round are announced again in the next one.
bool is_exchanged(const Inputs& inputs, const RoundPlan& plan);
/// Rows per step of this device.
double step_rows(const Inputs& inputs, std::size_t rank);
/// Mean rows per step over the devices with rows.
double step_rows(const Inputs& inputs);

/// Running mean in which the weight of a value halves after `rounds` newer values.
class HalfLife {
 public:
  explicit HalfLife(double rounds) {
    const double x = 0.693147180559945 / rounds;
    weight_ = x / (1 + x / 2 + x * x / 12);  // 1 - 2^(-1 / rounds), by exact operations
  }
  [[nodiscard]] double weight() const { return weight_; }
  void add(double& mean, double now, bool first) const { mean = first ? now : mean + weight_ * (now - mean); }

 private:
  double weight_ = 1;
};

/// Gates the next round, and sends this round's contributions as topk with ratio `keep`, or dense if it is 1.
void gate(const Inputs& inputs, double keep, RoundPlan& plan);
/// Formats a share as "73 %".
std::string percent(double share);

}  // namespace rivulet::sync::policy
