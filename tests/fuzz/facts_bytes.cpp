#include "tests/fuzz/facts_bytes.h"

#include "core/digest.h"
#include "sync/message/facts.h"
#include "tests/fuzz/bytes.h"

namespace rivulet::fuzz {

void seal_facts(std::span<std::byte> head) {
  static const std::vector<std::byte> own = sync::encode_head({});
  std::copy_n(own.begin(), 2 * sizeof(std::uint32_t), head.begin());
  const std::size_t end = head.size() - sizeof(std::uint64_t);
  put_number(head, end, digest_of(head.first(end)).low);
}

}  // namespace rivulet::fuzz
