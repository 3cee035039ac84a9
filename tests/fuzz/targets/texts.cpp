// Small texts in configurations and records: durations, sizes, paths into JSON, base64. The first byte
// selects.
#include "core/check.h"
#include "runtime/config/config.h"
#include "stream/decoder/json_path.h"
#include "sync/membership/base64.h"
#include "tests/fuzz/bytes.h"

namespace rivulet::fuzz {
namespace {

void read_path(std::string_view text) {
  const auto path = stream::parse_json_path(text);
  if (!path) return;
  RIVULET_CHECK(path.value().text == text && !path.value().steps.empty(), "a path leads somewhere");
  static_cast<void>(path.value().width());
}

void read_base64(std::string_view text) {
  const auto bytes = sync::membership::from_base64(text);
  if (!bytes) return;
  RIVULET_CHECK(sync::membership::to_base64(*bytes) == text, "only what would be written is read");
}

void run(Input input) {
  if (input.empty()) return;
  const std::string_view text = text_of(input.subspan(1));
  switch (std::to_integer<unsigned>(input.front()) % 4) {
    case 0: static_cast<void>(runtime::parse_duration(std::string(text))); break;
    case 1: static_cast<void>(runtime::parse_bytes(std::string(text))); break;
    case 2: read_path(text); break;
    default:
      read_base64(text);
      RIVULET_CHECK(sync::membership::from_base64(sync::membership::to_base64(input)) ==
                        Bytes(input.begin(), input.end()),
                    "bytes survive");
  }
}

std::vector<Bytes> seeds() {
  std::vector<Bytes> all;
  for (const std::string_view text : {"0100ms", "01.5h", "11 MiB", "164k", "2a.b[2]", "2current[0:3]",
                                      "2readings[:].x\\.y", "3AAEC", "3/+8="})
    all.push_back(bytes_of(text));
  return all;
}

}  // namespace

extern const Target target_texts;
const Target target_texts{"texts", run, seeds};

}  // namespace rivulet::fuzz
