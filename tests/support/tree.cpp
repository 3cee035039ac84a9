#include "tests/support/tree.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <regex>
#include <set>

#include "tests/support/source_text.h"
#include "tests/support/temp_dir.h"

namespace rivulet::testing {
namespace {

namespace fs = std::filesystem;
using Paths = std::vector<std::string>;

const Paths& product_folders() {
  static const Paths folders{"core", "stream", "buffer", "devices", "sync", "runtime"};
  return folders;
}

std::string top_folder(const fs::path& path) {
  return path.begin()->string();
}

bool starts_with_any(const std::string& text, const Paths& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&text](const std::string& prefix) { return text.rfind(prefix, 0) == 0; });
}

std::string at(const SourceText& source, std::size_t line) {
  return source.path.generic_string() + ":" + std::to_string(line + 1) + ": ";
}

struct Include {
  std::size_t line = 0;
  std::string path;
  bool quoted = false;
};

std::vector<Include> includes_of(const SourceText& source) {
  static const std::regex directive(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"])re");
  std::vector<Include> includes;
  for (std::size_t i = 0; i < source.raw.size(); ++i) {
    std::smatch match;
    // Not a directive inside a comment or a literal, where its # is not code.
    if (source.code[i].find('#') == std::string::npos) continue;
    if (std::regex_search(source.raw[i], match, directive)) {
      includes.push_back(Include{i, match[2].str(), match[1].str() == "\""});
    }
  }
  return includes;
}

bool may_include(const std::string& from, const std::string& to) {
  if (from == to || to == "core") return true;
  return from == "runtime" && to != "tests";
}

/// The directories of runtime/ and sync/, from lowest to highest layer: each may include those listed for it,
/// and their dependencies. Both CMakeLists.txt link them in the same order.
const std::map<std::string, Paths>& floors() {
  static const std::map<std::string, Paths> below{
      {"runtime/process", {}},
      {"runtime/config", {}},
      {"runtime/state", {"runtime/process"}},
      {"runtime/checkpoint", {"runtime/state"}},
      {"runtime/decisions", {}},
      {"runtime/status", {"runtime/checkpoint", "runtime/decisions"}},
      {"runtime/ingest", {"runtime/status"}},
      {"runtime/train", {"runtime/ingest"}},
      {"runtime/node", {"runtime/config", "runtime/train"}},
      {"runtime/wiring", {"runtime/node"}},
      {"runtime/cli", {"runtime/wiring"}},
      {"sync/message", {}},
      {"sync/coding", {"sync/message"}},
      {"sync/transport", {"sync/message"}},
      {"sync/membership", {"sync/message"}},
      {"sync/compressor", {"sync/coding"}},
      {"sync/residual", {"sync/compressor"}},
      {"sync/collective", {"sync/residual", "sync/transport"}},
      {"sync/policy", {"sync/collective"}},
      {"sync/controllers", {"sync/policy"}},
      {"sync/published", {"sync/controllers"}},
      {"sync/round", {"sync/policy"}}};
  return below;
}

/// True if directory `from` may include `to`; both in one layered folder.
bool is_above(const std::string& from, const std::string& to) {
  if (from == to) return true;
  const auto found = floors().find(from);
  return found != floors().end() &&
         std::any_of(found->second.begin(), found->second.end(),
                     [&](const std::string& below) { return is_above(below, to); });
}

/// "runtime/train" for runtime/train/worker.h; empty for paths outside layered folders.
std::string floor_of(const fs::path& path) {
  auto part = path.begin();
  if (part == path.end()) return {};
  const std::string folder = part->string();
  if ((folder != "runtime" && folder != "sync") || ++part == path.end()) return {};
  const std::string directory = folder + "/" + part->string();
  return ++part == path.end() ? std::string() : directory;
}

const Paths& torch_doors() {
  static const Paths folders{"devices/torch/", "devices/model/torch/", "sync/transport/gloo/"};
  return folders;
}

/// A library and the only places that may include it.
struct Door {
  std::string prefix;
  Paths allowed;
};

const std::vector<Door>& doors() {
  const Paths& torch = torch_doors();
  static const std::vector<Door> all{
      {"librdkafka/", {"stream/kafka/"}},
      {"simdjson", {"stream/decoder/json.cpp"}},
      {"zlib.h", {"stream/dataset", "sync/coding/rows.cpp"}},
      {"zip.h", {"devices/torch/zip_size.cpp"}},
      {"boost/", {"buffer/"}},
      {"torch/csrc/distributed/", {"sync/transport/gloo/"}},
      {"torch/", torch},
      {"c10/", torch},
      {"ATen/", torch},
      {"gloo/", {"sync/transport/gloo/"}},
      {"cuda_runtime_api.h", {"devices/cuda/"}},
      {"toml++/", {"runtime/config/"}},
      {"CLI/", {"runtime/cli/"}},
      {"microhttpd.h", {"runtime/status/http/"}},
      {"curl/", {"runtime/status/http/"}},
      {"prometheus/", {"runtime/status/metrics/"}},
      {"spdlog/", {"runtime/process/log.cpp"}},
      {"nlohmann/",
       {"stream/dataset", "stream/kafka/statistics.cpp", "stream/text_records.cpp", "sync/membership/",
        "runtime/"}},
      {"fmt/", {""}},
      {"xxhash.h", {"core/digest.cpp"}},
      {"xxh_x86dispatch.h", {"core/digest.cpp"}},
      {"openssl/", {"core/sha256.cpp", "sync/membership/base64.cpp"}},
      {"doctest/", {}},
  };
  return all;
}

/// System headers: C++ headers have no suffix and no folder; those of kernel and libc are listed.
bool is_system_header(const std::string& path) {
  static const Paths folders{"sys/", "netinet/", "arpa/", "net/", "linux/"};
  static const std::set<std::string> files{"unistd.h",   "fcntl.h",  "signal.h",  "pthread.h", "poll.h",
                                           "netdb.h",    "sched.h",  "malloc.h",  "link.h",    "elf.h",
                                           "execinfo.h", "dlfcn.h",  "ifaddrs.h", "termios.h", "time.h",
                                           "spawn.h",    "getopt.h", "pwd.h"};
  if (path.find('.') == std::string::npos && path.find('/') == std::string::npos) return true;
  return starts_with_any(path, folders) || files.count(path) > 0;
}

std::string door_problem(const SourceText& source, const Include& include) {
  const std::string path = source.path.generic_string();
  for (const Door& door : doors()) {
    if (include.path.rfind(door.prefix, 0) != 0) continue;
    if (!starts_with_any(path, door.allowed)) return "includes <" + include.path + "> outside its door";
    // LibTorch's wrapper has private headers: a tensor cannot be a member without its type.
    const bool header = source.path.extension() == ".h" && !starts_with_any(path, torch_doors());
    return header ? "a header includes <" + include.path + ">: only .cpp files may" : std::string();
  }
  return "includes <" + include.path + ">, which has no door";
}

/// A private header of LibTorch's wrapper exposes its types, so only the wrapper may include it.
std::string private_header_problem(const SourceText& source, const Include& include) {
  const bool inside = starts_with_any(source.path.generic_string(), torch_doors());
  return !inside && starts_with_any(include.path, torch_doors())
             ? "includes " + include.path + ", private to LibTorch's door"
             : std::string();
}

}  // namespace

Findings check_include_arrows(const fs::path& root) {
  Findings findings;
  for (const SourceText& source : read_sources(root, product_folders())) {
    const std::string from = top_folder(source.path);
    for (const Include& include : includes_of(source)) {
      if (!include.quoted || include.path == "rivulet_version.h" || include.path == "rivulet_status_page.h")
        continue;  // generated by the build
      const std::string to = top_folder(include.path);
      const std::string inner_from = floor_of(source.path);
      const std::string inner_to = floor_of(include.path);
      if (!may_include(from, to)) {
        findings.push_back(at(source, include.line) + from + " may not include " + include.path);
      } else if (from == to && !inner_from.empty() && !inner_to.empty() && !is_above(inner_from, inner_to)) {
        findings.push_back(at(source, include.line) + inner_from + " may not include " + include.path);
      } else if (!fs::exists(root / include.path)) {
        findings.push_back(at(source, include.line) + include.path + " is not a path from the root");
      }
    }
  }
  return findings;
}

Findings check_third_party_doors(const fs::path& root) {
  Findings findings;
  for (const SourceText& source : read_sources(root, product_folders())) {
    const bool shim = source.path.generic_string().rfind("sync/transport/gloo/shim/", 0) == 0;
    for (const Include& include : includes_of(source)) {
      if (is_system_header(include.path) || shim) continue;
      const std::string problem =
          include.quoted ? private_header_problem(source, include) : door_problem(source, include);
      if (!problem.empty()) findings.push_back(at(source, include.line) + problem);
    }
  }
  return findings;
}

namespace {

/// A restricted construct. The pattern is searched in code, never in comments.
struct Ban {
  std::string what;
  std::regex pattern;
  Paths allowed;
};

const std::vector<Ban>& bans() {
  // Waiting is reserved for runners, wrappers of libraries that need it, and programs that watch others.
  static const Paths waiting{
      "core/clock.cpp", "runtime/process/runner", "runtime/process/watchdog", "runtime/wiring/production.cpp",
      "runtime/cli/",   "stream/kafka/",          "sync/transport/gloo/"};
  static const std::vector<Ban> all{
      {"reads a clock (take a rivulet::Clock)",
       std::regex(
           R"(\b(steady_clock|system_clock|high_resolution_clock|clock_gettime|gettimeofday|localtime\w*)\b)"),
       {"core/clock.cpp"}},
      {"asks the system for the time", std::regex(R"(\btime\s*\(\s*(nullptr|NULL|0|&))"), {"core/clock.cpp"}},
      {"uses randomness without a seed (take a rivulet::Rng)",
       std::regex(R"(\b(random_device|s?rand(om)?\s*\(|mt19937\w*|default_random_engine|getrandom))"),
       // Must be unpredictable: a page's nonce, and the numbers that admit a member to a view.
       {"core/rng.", "runtime/status/http/answer.cpp", "sync/transport/gloo/peer_door.cpp"}},
      {"sleeps", std::regex(R"(\b(sleep_for|sleep_until|usleep|nanosleep|sleep)\s*\()"), waiting},
      // Their last bits depend on the C library, and devices have several: agreed values must not depend on
      // them.
      {"takes a function that rounds as the C library does",
       std::regex(R"(\bstd::(log|log1p|log2|log10|exp|exp2|expm1|pow|tanh|sin|cos)\b)"),
       {"core/rng.cpp", "devices/adam_step.cpp", "devices/model/", "runtime/", "stream/narrowing.cpp"}},
      // Types of LibTorch and spdlog need it. Other cases: memory as a network or log, which no device owns;
      // equal memory shared by devices (docs/adr/0015); and a thread that may be left behind.
      {"shares ownership (ownership is a tree)",
       std::regex(R"(\b(shared_ptr|make_shared|weak_ptr)\b)"),
       {"devices/torch/", "devices/model/torch/", "sync/transport/gloo/", "runtime/process/log.cpp",
        "sync/transport/memory_", "sync/membership/memory_", "sync/membership/membership.h", "core/shared_",
        "sync/round/", "sync/collective/gather", "sync/transport/gather", "runtime/state/state_handle.",
        "runtime/state/announced.cpp", "stream/kafka/client.cpp"}},
  };
  return all;
}

Findings lines_that_match(const std::vector<SourceText>& sources, const std::vector<Ban>& rules) {
  Findings findings;
  for (const SourceText& source : sources) {
    for (const Ban& ban : rules) {
      if (starts_with_any(source.path.generic_string(), ban.allowed)) continue;
      for (std::size_t i = 0; i < source.code.size(); ++i) {
        if (std::regex_search(source.code[i], ban.pattern)) findings.push_back(at(source, i) + ban.what);
      }
    }
  }
  return findings;
}

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// `virtual` is a keyword in code, and elsewhere refers to simulation, except for the kernel's virtual
/// memory.
bool speaks_of_simulation(const SourceText& source, std::size_t line) {
  const std::string raw = lower(source.raw[line]);
  if (raw.find("simulat") != std::string::npos || raw.find("modeled") != std::string::npos) return true;
  static const std::regex virtual_prose("virtual(?![ _]memory)");
  if (std::regex_search(lower(source.comments[line] + source.literals[line]), virtual_prose)) return true;
  const std::vector<std::string> words = words_of(source.code[line]);
  return std::any_of(words.begin(), words.end(), [](const std::string& word) {
    return word != "virtual" && lower(word).find("virtual") != std::string::npos;
  });
}

}  // namespace

Findings check_banned_calls(const fs::path& root) {
  return lines_that_match(read_sources(root, product_folders()), bans());
}

Findings check_simulation_words(const fs::path& root) {
  static const Paths allowed{"runtime/wiring/simulation",
                             "runtime/wiring/sim_runner",
                             "runtime/wiring/simulate",
                             "runtime/cli/",
                             "core/clock.",
                             "core/time.h",
                             "devices/modeled_device.",
                             "sync/transport/memory_"};
  Findings findings;
  for (const SourceText& source : read_sources(root, product_folders())) {
    if (starts_with_any(source.path.generic_string(), allowed)) continue;
    for (std::size_t i = 0; i < source.raw.size(); ++i) {
      if (speaks_of_simulation(source, i)) findings.push_back(at(source, i) + "refers to simulation");
    }
  }
  return findings;
}

Findings check_metric_names(const fs::path& root) {
  static const std::regex listed(R"re(^RIVULET_METRIC\((\w+), (\w+),)re");
  static const std::regex shown(R"re(^RIVULET_(VALUE|TOTAL|MEASURED)\()re");  // NodeStatus creates its series
  static const std::regex asked(R"re(\b(counter|gauge|histogram)\(\s*"(\w+)")re");
  static const std::regex literal(R"re("(\w+)")re");
  std::map<std::string, std::string> kinds;
  std::set<std::string> mentioned;
  for (const std::string& line : read_source(root, "core/metrics.def").raw) {
    std::smatch match;
    if (std::regex_search(line, match, listed)) kinds[match[2].str()] = match[1].str();
    if (!std::regex_search(line, shown)) continue;
    for (std::sregex_iterator it(line.begin(), line.end(), literal), end; it != end; ++it)
      mentioned.insert((*it)[1]);
  }
  Findings findings;
  for (const SourceText& source : read_sources(root, product_folders())) {
    for (std::size_t i = 0; i < source.raw.size(); ++i) {
      const std::string& line = source.raw[i];
      for (std::sregex_iterator it(line.begin(), line.end(), literal), end; it != end; ++it)
        mentioned.insert((*it)[1]);
      for (std::sregex_iterator it(line.begin(), line.end(), asked), end; it != end; ++it) {
        const auto found = kinds.find((*it)[2].str());
        if (found == kinds.end() || found->second != (*it)[1].str()) {
          findings.push_back(at(source, i) + "no " + (*it)[1].str() + " " + (*it)[2].str() +
                             " in core/metrics.def");
        }
      }
    }
  }
  for (const auto& [name, kind] : kinds) {
    if (mentioned.count(name) == 0)
      findings.push_back("core/metrics.def: no code sets the " + kind + " " + name);
  }
  return findings;
}

Findings check_file_lengths(const fs::path& root) {
  constexpr std::size_t lines_max = 400;
  constexpr std::size_t test_lines_max = 600;  // tables and cases are easier to read in one file
  Paths folders = product_folders();
  folders.insert(folders.end(), {"tests", "bench", "examples"});
  Findings findings;
  for (const SourceText& source : read_sources(root, folders)) {
    const bool test = source.path.generic_string().starts_with("tests/");
    if (source.raw.size() <= (test ? test_lines_max : lines_max)) continue;
    findings.push_back(source.path.generic_string() + ": " + std::to_string(source.raw.size()) + " lines");
  }
  return findings;
}

namespace {

struct Catalog {
  std::string folder;
  std::string prefix;
};

const std::vector<Catalog>& catalogs() {
  static const std::vector<Catalog> all{{"stream/decoder", "decoder_"},
                                        {"devices/model", "model_"},
                                        {"devices/model/torch", "model_"},
                                        {"sync/policy/batch", "batch_"},
                                        {"sync/policy/collective", "collective_"},
                                        {"sync/compressor", "compressor_"},
                                        {"sync/collective/aggregation", "aggregation_"}};
  return all;
}

bool names(const SourceText& source, const std::string& word) {
  return std::any_of(source.code.begin(), source.code.end(), [&word](const std::string& line) {
    const std::vector<std::string> words = words_of(line);
    return std::find(words.begin(), words.end(), word) != words.end();
  });
}

}  // namespace

Findings check_catalogs(const fs::path& root) {
  Findings findings;
  const std::vector<SourceText> sources = read_sources(root, product_folders());
  for (const Catalog& catalog : catalogs()) {
    for (const SourceText& member : sources) {
      if (member.path.parent_path() != catalog.folder || member.path.extension() != ".cpp") continue;
      const std::string entry = catalog.prefix + member.path.stem().string();
      if (!names(member, entry))
        findings.push_back(member.path.generic_string() + ": does not define " + entry);
      for (const SourceText& other : sources) {
        if (other.path == member.path || !names(other, entry)) continue;
        findings.push_back(other.path.generic_string() + ": names the catalog's entry " + entry);
      }
    }
  }
  return findings;
}

Findings check_tests(const fs::path& root) {
  static const std::vector<Ban> no_sleep{
      {"a unit test sleeps",
       std::regex(R"(\b(sleep_for|sleep_until|usleep|nanosleep|wait_until)\s*\()"),
       {}}};
  Findings findings = lines_that_match(read_sources(root, {"tests/unit"}), no_sleep);
  for (const SourceText& source : read_sources(root, {"tests"})) {
    bool doctest_seen = false;
    for (const Include& include : includes_of(source)) {
      doctest_seen = doctest_seen || include.path.rfind("doctest/", 0) == 0;
      if (doctest_seen && starts_with_any(include.path, {"torch/", "c10/", "ATen/"})) {
        findings.push_back(at(source, include.line) + "LibTorch after doctest: its CHECK would win");
      }
    }
  }
  return findings;
}

}  // namespace rivulet::testing
