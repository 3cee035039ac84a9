#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

#include "sync/coding/gains.h"
#include "sync/policy/controller.h"

/// What compression would keep of contributions, for the published gates. Pure.
namespace rivulet::sync::policy {

/// The definitions that are published under one name; thresholds of one mean nothing to the other.
enum class GainKind : std::uint8_t {
  squared,    ///< |C(e)|^2 / |e|^2, e: gradient and residual. As the papers (GraVAC, ScaDLES) have it
  unsquared,  ///< |C(e)| / |g|, g: gradient alone. As their code: rises to 1 as the residual fills, on noise
              ///< too
};
inline constexpr Key gain_key(std::string_view name, std::string_view text) {
  return {.name = name,
          .type = KeyType::text,
          .text = text,
          .help =
              "of gates: squared, of gradient and residual (papers); unsquared, of the gradient alone (their "
              "code)",
          .choices = "squared | unsquared"};
}

/// For ControllerEntry::fact_fields of a controller that reads gains; nothing else.
inline constexpr std::array gain_fields{
    FactField{"energy_shares", "of the squared norm, in the largest numbers of its contribution",
              gain_keeps.size()},
    FactField{"contribution_norm", "of its weighted gradient and what it kept of earlier ones"},
    FactField{"gradient_norm", "of its weighted gradient alone"},
};

/// Where in Facts::measurements they are; nothing if none of these wants them.
std::optional<std::size_t> place_of_gains(const Controllers& controllers);

/// Of what one device brings, the gain of its largest `keep`; 0 if it brings nothing. Between the shares that
/// facts have, on a straight line.
double gain_of(const Inputs& inputs, std::size_t rank, double keep, GainKind kind);
/// Mean over the devices that have rows; 0: none has.
double mean_gain(const Inputs& inputs, double keep, GainKind kind);
GainKind gain_kind(std::string_view text);
/// Gains are learned of rounds that are exchanged alone: rows of one that is held come again with the next.
bool is_exchanged(const Inputs& inputs, const RoundPlan& plan);
/// Rows of a step of this device.
double step_rows(const Inputs& inputs, std::size_t rank);
/// Mean over the devices that have some.
double step_rows(const Inputs& inputs);

/// A running mean in which a value counts half after N others.
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

/// The next contributions wait for their plan; those of this round go as topk of `keep`, or whole from 1 on.
void gate(const Inputs& inputs, double keep, RoundPlan& plan);
/// "73 %".
std::string percent(double share);

}  // namespace rivulet::sync::policy
