#include "core/digest.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // selects the widest vector unit of the CPU; same digests
#else
#include <xxhash.h>
#endif

#include <new>
#include <string_view>

#include "core/check.h"

namespace rivulet {

std::string Digest::hex() const {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text(32, '0');
  for (std::size_t i = 0; i < 16; ++i) {
    text[15 - i] = digits[(high >> (4 * i)) & 15U];
    text[31 - i] = digits[(low >> (4 * i)) & 15U];
  }
  return text;
}

struct Hasher::State {
  XXH3_state_t* xxh = XXH3_createState();
  ~State() { XXH3_freeState(xxh); }
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  RIVULET_CHECK(state_->xxh != nullptr, "out of memory");
  XXH3_128bits_reset(state_->xxh);
}
Hasher::~Hasher() = default;

void Hasher::join() noexcept {
  XXH3_128bits_update(state_->xxh, values_.data(), joined_);
  joined_ = 0;
}

void Hasher::add(std::span<const std::byte> bytes) noexcept {
  join();
  XXH3_128bits_update(state_->xxh, bytes.data(), bytes.size());
}

Digest Hasher::finish() noexcept {
  join();
  const XXH128_hash_t h = XXH3_128bits_digest(state_->xxh);
  return {h.low64, h.high64};
}

Digest digest_of(std::span<const std::byte> bytes) noexcept {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.low64, h.high64};
}

}  // namespace rivulet
