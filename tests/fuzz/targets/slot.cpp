// The bytes of a slot from a peer, for every compressor (first byte) and every code for values (second byte).
// Values that are read are added between guards; errors must be protocol errors.
#include <array>

#include "core/check.h"
#include "core/rng.h"
#include "runtime/config/config.h"
#include "sync/compressor/compressor.h"
#include "tests/fuzz/bytes.h"

namespace rivulet::fuzz {
namespace {

using namespace sync;

constexpr std::size_t elements = 1000;

const ContributionShape& shape() {
  static const ContributionShape value{Scalar::f32, {600, 400}, 0, {20, 20}};
  return value;
}
constexpr std::array value_codes{"i8", "f32", "f16", "bf16", "sign"};
/// With one of the codes for values, per tensor or not.
const Settings& settings(std::size_t which) {
  static const std::vector<Settings> all = [] {
    std::vector<Settings> made;
    for (const bool per_tensor : {false, true})
      for (const char* code : value_codes) {
        Settings& one = made.emplace_back(runtime::Config::default_settings());
        one.set("compression.topk.values", std::string(code));
        one.set("compression.topk.per_tensor", per_tensor);
      }
    return made;
  }();
  return all[which % all.size()];
}
Coding coding(std::size_t which) {
  return {&shape(), 0.05, 17, &settings(which)};
}

void run(Input input) {
  if (input.size() < 2) return;
  const auto compressors = builtin_compressors();
  const auto& compressor = *compressors[std::to_integer<std::size_t>(input[0]) % compressors.size()];
  std::vector<float> numbers(elements);  // ASan guards both ends
  const GradientView sum{.data = reinterpret_cast<std::byte*>(numbers.data()), .count = elements};
  if (const auto added =
          compressor.decode_add(coding(std::to_integer<std::size_t>(input[1])), input.subspan(2), 0.5, sum);
      !added)
    RIVULET_CHECK(added.error().code == ErrorCode::protocol && !added.error().message.empty(),
                  "refused as what the protocol forbids");
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  Rng rng(1);
  std::vector<float> numbers(elements);
  for (float& x : numbers) x = static_cast<float>(rng.normal());
  const GradientView view{.data = reinterpret_cast<std::byte*>(numbers.data()), .count = elements};
  const auto compressors = builtin_compressors();
  for (std::size_t i = 0; i < compressors.size(); ++i)
    for (std::size_t which = 0; which < 2 * value_codes.size(); ++which) {
      if (which > 0 && compressors[i]->name != "topk") continue;
      const Coding with = coding(which);
      std::vector<std::byte> slot(compressors[i]->slot_bytes(shape(), with.keep_ratio, settings(which)));
      compressors[i]->encode(with, view, slot);
      Bytes& seed = all.emplace_back(Bytes{static_cast<std::byte>(i), static_cast<std::byte>(which)});
      seed.insert(seed.end(), slot.begin(), slot.end());
    }
  return all;
}

}  // namespace

extern const Target target_slot;
const Target target_slot{"slot", run, seeds};

}  // namespace rivulet::fuzz
