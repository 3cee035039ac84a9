#include "runtime/state/state_file.h"

#include <fmt/format.h>

#include "runtime/process/whole_file.h"

namespace rivulet::runtime {

Status write_state_file(const std::string& path, const StateOwner& owner, const AgreedState& state,
                        const Digest& digest) {
  return write_whole_file(path, encode_state(owner, state, digest));
}

Result<DecodedState> read_state_file(const std::string& path, const Expected& expected) {
  const auto file = read_whole_file(path, state_image_max(expected.layout));
  if (!file) return file.error();
  auto decoded = decode_state(file.value(), expected);
  if (decoded) return decoded;
  return Error{decoded.error().code,
               fmt::format("state file {} cannot be used: {}", path, decoded.error().message)};
}

}  // namespace rivulet::runtime
