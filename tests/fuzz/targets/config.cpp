// The text of a configuration file. For any text every problem is a sentence; and a configuration without
// problems, printed by the product, reads as the same configuration.
#include <sys/mman.h>
#include <unistd.h>

#include <set>

#include "core/check.h"
#include "runtime/config/config.h"
#include "tests/fuzz/bytes.h"

namespace rivulet::fuzz {
namespace {

using namespace runtime;

/// A file in memory: a search writes thousands of them per second.
class MemoryFile {
 public:
  MemoryFile() : descriptor_(memfd_create("device.toml", MFD_CLOEXEC)) {
    RIVULET_CHECK(descriptor_ >= 0, "the kernel makes files in memory");
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  void put(Input bytes) const {
    const auto size = static_cast<ssize_t>(bytes.size());
    RIVULET_CHECK(
        ftruncate(descriptor_, 0) == 0 && pwrite(descriptor_, bytes.data(), bytes.size(), 0) == size,
        "a file in memory can be written");
  }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

ConfigInput input_of(const std::string& path) {
  ConfigInput input;
  input.file = path;
  input.catalog = CatalogNames{
      {"csv", "json", "raw"}, {"lenet5", "linear", "mlp"}, {"fixed", "stream", "unified"}, {"sgd"}};
  input.variable = [](const std::string& name) -> std::optional<std::string> {
    if (name == "HOME") return "/home/me";
    return std::nullopt;
  };
  return input;
}

/// As `key=value` on a command line: the shown value of a key is valid input for it.
void check_shown_is_read(const LoadedConfig& loaded, const MemoryFile& file) {
  ConfigInput input = input_of(file.path());
  std::set<std::string> known;
  for (const KeySpec& spec : key_table())
    if (!spec.secret) known.insert(spec.key);
  for (const auto& [key, value] : loaded.effective) {
    // "${" is a variable in input and text in output; a secret is not shown.
    if (!known.contains(key) || value.find('$') != std::string::npos || value == "\"***\"") continue;
    if (loaded.origin.at(key) != "default") input.sets.push_back(key + "=" + value);
  }
  const LoadedConfig again = load_config(input);
  RIVULET_CHECK(again.usable(), again.problems.empty() ? "" : again.problems.front().text());
  RIVULET_CHECK(again.effective == loaded.effective, "printed values read as the same configuration");
  RIVULET_CHECK(group_hash(group_keys(again)) == group_hash(group_keys(loaded)), "the group sees the same");
}

void run(Input input) {
  static const MemoryFile file;
  file.put(input);
  const LoadedConfig loaded = load_config(input_of(file.path()));
  for (const Problem& problem : loaded.problems)
    RIVULET_CHECK(!problem.message.empty() && !problem.text().empty(), "every problem is a sentence");
  if (loaded.usable()) check_shown_is_read(loaded, file);
}

std::vector<Bytes> seeds() {
  const std::string brokers = "\n[source.kafka.properties]\n\"bootstrap.servers\" = \"127.0.0.1:9092\"\n";
  return {
      bytes_of(config_template()),
      bytes_of("job.name = \"pumps\"\njob.devices = 1\nsource.topics = [\"readings\"]\n" + brokers),
      bytes_of("[job]\nname = 'a'\ndevices = 2\n[device]\nid = \"${HOME}\"\n[source]\ntype = \"synthetic\"\n"
               "[batch]\npolicy = \"fixed\"\nrows = 0x40\nmax_wait = \"1.5s\"\n[train]\nlr = 1e-3\n"),
      bytes_of("[decode]\nformat = \"json\"\nmax_record_bytes = \"1 MiB\"\n[decode.json]\n"
               "features = [\"a.b[0:3]\"]\ntarget = 'y'\nshape = [1, 3]\n"),
      bytes_of("[job\nname = \"\"\"\nx\ny = 1979-05-27T07:32:00Z\n")};
}

}  // namespace

extern const Target target_config;
const Target target_config{"config", run, seeds};

}  // namespace rivulet::fuzz
