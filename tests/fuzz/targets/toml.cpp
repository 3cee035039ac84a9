// The text of a configuration file at the level of TOML: every value has a path, and every name in it a
// position.
#include "core/check.h"
#include "runtime/config/toml_text.h"
#include "tests/fuzz/bytes.h"

namespace rivulet::fuzz {
namespace {

using namespace runtime;

void run(Input input) {
  const TomlText read = read_toml(std::string(text_of(input)), "device.toml");
  RIVULET_CHECK(read.problems.size() <= 1, "invalid TOML gives one error");
  for (const Problem& problem : read.problems)
    RIVULET_CHECK(!problem.message.empty() && problem.line > 0, "the first mistake has a place");
  for (const TomlLeaf& leaf : read.leaves) {
    RIVULET_CHECK(!leaf.path.empty() && leaf.places.size() == leaf.path.size(), "every name has a place");
    static_cast<void>(render(leaf.value));
  }
}

std::vector<Bytes> seeds() {
  return {
      bytes_of("a = 1\nb.c = \"x\"\n[d.\"e f\"]\ng = [1, 2.5, true, 'z', [[]]]\n"),
      bytes_of("x = { y = 0xff, z = { } }\n[[t]]\nn = 1979-05-27T07:32:00Z\n[[t]]\nn = 07:32:00.5\n"),
      bytes_of("s = \"\"\"\nmore \\\n   \\u00e9 \\U0001F600\"\"\"\nr = '''\nraw'''\nf = -inf\ni = 1_000\n"),
      bytes_of("[job\nname = \"\"\"\nx")};
}

}  // namespace

extern const Target target_toml;
const Target target_toml{"toml", run, seeds};

}  // namespace rivulet::fuzz
