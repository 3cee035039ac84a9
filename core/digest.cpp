#include "core/digest.h"

#if defined(__x86_64__)
#include <xxh_x86dispatch.h>  // the widest vector unit that there is, same digests
#else
#include <xxhash.h>
#endif

#include <cstdio>
#include <new>

#include "core/check.h"

namespace rivulet {

std::string Digest::hex() const {
  char text[33];
  std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(high),
                static_cast<unsigned long long>(low));
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
