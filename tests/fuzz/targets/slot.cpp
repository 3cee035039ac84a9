// The bytes of a slot, as a peer made them up: of every compressor, whose number is the first byte. What is
// read is added to numbers that lie between guards; what is refused is refused as what the protocol forbids.
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
  static const ContributionShape value{Scalar::f32, {600, 400}, 0};
  return value;
}
const Settings& settings() {
  static const Settings value = runtime::Config::default_settings();
  return value;
}
Coding coding() {
  return {&shape(), 0.05, 17, &settings()};
}

void run(Input input) {
  if (input.empty()) return;
  const auto compressors = builtin_compressors();
  const auto& compressor = *compressors[std::to_integer<std::size_t>(input[0]) % compressors.size()];
  std::vector<float> numbers(elements);  // ASan guards both ends
  const GradientView sum{.data = reinterpret_cast<std::byte*>(numbers.data()), .count = elements};
  if (const auto added = compressor.decode_add(coding(), input.subspan(1), 0.5, sum); !added)
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
  for (std::size_t i = 0; i < compressors.size(); ++i) {
    std::vector<std::byte> slot(compressors[i]->slot_bytes(shape(), coding().keep_ratio, settings()));
    compressors[i]->encode(coding(), view, slot);
    Bytes& seed = all.emplace_back(1, static_cast<std::byte>(i));
    seed.insert(seed.end(), slot.begin(), slot.end());
  }
  return all;
}

}  // namespace

extern const Target target_slot;
const Target target_slot{"slot", run, seeds};

}  // namespace rivulet::fuzz
