// The checks of tests/support/tree.h: each finds its violation in a small planted tree, then runs over the
// real one.
#include <doctest/doctest.h>

#include <filesystem>
#include <stdexcept>
#include <string>

#include "tests/support/entry_names.h"
#include "tests/support/places.h"
#include "tests/support/source_text.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tree.h"

using namespace rivulet::testing;

namespace {

using Check = Findings (*)(const std::filesystem::path&);

constexpr Check all_checks[] = {
    check_include_arrows, check_third_party_doors, check_banned_calls, check_simulation_words,
    check_metric_names,   check_file_lengths,      check_catalogs,     check_tests,
    check_entry_names};

/// A tree of a few files that passes every check.
TempDir& plant_clean_tree(TempDir& tree) {
  tree.write("core/clock.cpp",
             "auto t = std::chrono::steady_clock::now();  // the virtual clock is not here\n");
  tree.write("core/row.h", "#pragma once\n#include <cstdint>\nstruct Row { virtual ~Row(); };\n");
  tree.write("core/metrics.def", "RIVULET_METRIC(counter, rows_total, \"Rows.\")\n");
  tree.write("stream/kafka/source.cpp", "#include <librdkafka/rdkafka.h>\n#include \"core/row.h\"\n");
  tree.write("stream/decoder/raw.cpp", "#include \"core/row.h\"\nextern const DecoderEntry decoder_raw;\n");
  tree.write("runtime/train/worker.cpp",
             "#include \"core/row.h\"\nvoid f(Sink& s) { s.counter(\"rows_total\"); }\n");
  tree.write("tests/unit/a_test.cpp", "#include <torch/torch.h>\n#include <doctest/doctest.h>\n");
  tree.write("sync/round/session.h", "#pragma once\n#include \"core/row.h\"\n");
  for (const char* folder : {"buffer", "devices", "sync", "bench", "examples"})
    tree.write(std::string(folder) + "/empty.h", "#pragma once\n");
  return tree;
}

/// Findings of `check` for the clean tree with one more file.
Findings findings_with(Check check, const std::string& path, const std::string& text) {
  TempDir tree;
  plant_clean_tree(tree).write(path, text);
  return check(tree.path());
}

/// Exactly one finding, which begins with `where`.
void check_found(Check check, const std::string& path, const std::string& text, const std::string& where) {
  const Findings findings = findings_with(check, path, text);
  CAPTURE(text);
  REQUIRE(findings.size() == 1);
  CHECK_MESSAGE(findings.front().rfind(where, 0) == 0, findings.front());
}

void check_nothing(Check check, const std::string& path, const std::string& text) {
  const Findings findings = findings_with(check, path, text);
  CHECK_MESSAGE(findings.empty(), findings.front());
}

void check_real_tree(Check check) {
  const Findings findings = check(source_path());
  for (const std::string& finding : findings) MESSAGE(finding);
  CHECK(findings.empty());
}

}  // namespace

TEST_CASE("Tree: code, comments and literals are told apart") {
  const TempDir tree;
  tree.write("core/x.cpp",
             "int a = 1'000; // one 'two\n"
             "auto b = \"// text \\\" /*\"; /* begin\n"
             "end */ char c = '\"'; int d;\n"
             "auto e = R\"x(// \" )\" )x\"; int f;\n");
  const SourceText source = read_source(tree.path(), "core/x.cpp");
  REQUIRE(source.code.size() == 4);
  CHECK(words_of(source.code[0]) == std::vector<std::string>{"int", "a", "1", "000"});
  CHECK(words_of(source.comments[0]) == std::vector<std::string>{"one", "two"});
  CHECK(words_of(source.literals[1]) == std::vector<std::string>{"text"});
  CHECK(words_of(source.comments[1]) == std::vector<std::string>{"begin"});
  CHECK(words_of(source.code[2]) == std::vector<std::string>{"char", "c", "int", "d"});
  CHECK(words_of(source.code[3]) == std::vector<std::string>{"auto", "e", "R", "x", "x", "int", "f"});
}

TEST_CASE("Tree: a tree that keeps its promises has no findings") {
  TempDir tree;
  plant_clean_tree(tree);
  for (const Check check : all_checks) {
    const Findings findings = check(tree.path());
    CHECK_MESSAGE(findings.empty(), findings.front());
  }
}

TEST_CASE("Tree: a folder that is not there is an error, not a folder without findings") {
  for (const Check check : all_checks) {
    TempDir tree;
    plant_clean_tree(tree);
    std::filesystem::rename(tree.path() / "sync", tree.path() / "synch");
    std::filesystem::rename(tree.path() / "tests", tree.path() / "test");
    CHECK_THROWS_AS(check(tree.path()), std::runtime_error);
  }
}

TEST_CASE("Tree: a forbidden include arrow is found") {
  check_found(check_include_arrows, "sync/a.h", "\n#include \"runtime/train/worker.cpp\"\n", "sync/a.h:2: ");
  check_found(check_include_arrows, "stream/a.cpp", "#include \"stream/missing.h\"\n", "stream/a.cpp:1: ");
  check_found(check_include_arrows, "core/a.h", "#include \"stream/kafka/source.cpp\"\n", "core/a.h:1: ");
  check_found(check_include_arrows, "runtime/a.cpp", "#include \"tests/unit/a_test.cpp\"\n",
              "runtime/a.cpp:1: ");
  check_nothing(check_include_arrows, "runtime/a.cpp", "#include \"stream/kafka/source.cpp\"\n");
  check_found(check_include_arrows, "runtime/status/a.cpp", "#include \"runtime/train/worker.cpp\"\n",
              "runtime/status/a.cpp:1: ");
  check_found(check_include_arrows, "runtime/other/a.cpp", "#include \"runtime/train/worker.cpp\"\n",
              "runtime/other/a.cpp:1: ");
  check_nothing(check_include_arrows, "runtime/node/a.cpp", "#include \"runtime/train/worker.cpp\"\n");
  check_found(check_include_arrows, "sync/transport/a.cpp", "#include \"sync/round/session.h\"\n",
              "sync/transport/a.cpp:1: ");
  check_found(check_include_arrows, "sync/other/a.cpp", "#include \"sync/round/session.h\"\n",
              "sync/other/a.cpp:1: ");
  check_nothing(check_include_arrows, "sync/round/a.cpp", "#include \"sync/round/session.h\"\n");
  check_nothing(check_include_arrows, "sync/a.cpp", "// #include \"runtime/train/worker.cpp\"\n");
}

TEST_CASE("Tree: a third-party header outside its door is found") {
  check_found(check_third_party_doors, "stream/a.cpp", "#include <librdkafka/rdkafka.h>\n",
              "stream/a.cpp:1: ");
  check_found(check_third_party_doors, "stream/kafka/a.h", "#include <librdkafka/rdkafka.h>\n",
              "stream/kafka/a.h:1: ");
  check_found(check_third_party_doors, "sync/a.cpp", "#include <ATen/ATen.h>\n", "sync/a.cpp:1: ");
  check_found(check_third_party_doors, "devices/torch/a.cpp",
              "#include <torch/csrc/distributed/c10d/Store.hpp>\n", "devices/torch/a.cpp:1: ");
  check_found(check_third_party_doors, "devices/a.cpp", "#include \"devices/torch/a.h\"\n",
              "devices/a.cpp:1: ");
  check_found(check_third_party_doors, "core/a.cpp", "#include <openssl/ssl.h>\n", "core/a.cpp:1: ");
  check_nothing(check_third_party_doors, "devices/torch/a.h", "#include <torch/torch.h>\n");
  check_nothing(check_third_party_doors, "sync/a.cpp", "#include <fmt/format.h>\n#include <sys/socket.h>\n");
}

TEST_CASE("Tree: the name of an entry outside its file is found") {
  const auto with_topk = [](const std::string& path, const std::string& text) {
    TempDir tree;
    plant_clean_tree(tree);
    tree.write(
        "sync/compressor/topk.cpp",
        "extern const CompressorEntry compressor_topk;\nconst CompressorEntry compressor_topk{\"topk\"};\n");
    tree.write("sync/controllers/when/auto.cpp", "const ControllerEntry when_auto{Role::when, \"auto\"};\n");
    tree.write(path, text);
    return check_entry_names(tree.path());
  };
  for (const char* line :
       {"bool a = name == \"topk\";", "use(\"topk\");", "bool b = config.sync_policy != \"auto\";",
        "auto c = controller_named(Role::when, \"auto\");"}) {
    const Findings findings = with_topk("sync/policy/a.cpp", std::string("// \"topk\"\n") + line + "\n");
    CAPTURE(line);
    REQUIRE(findings.size() == 1);
    CHECK(findings.front().starts_with("sync/policy/a.cpp:2: "));
  }
  for (const char* line :
       {"// as \"topk\" does", "say(\"of compressor topk\");", "bool d = bind == \"auto\";"})
    CHECK(with_topk("sync/policy/a.cpp", line).empty());
  CHECK(with_topk("runtime/config/config.h", "std::string compressor = \"topk\";\n").empty());
}

TEST_CASE("Tree: clocks, randomness, sleeping, shared ownership and a library's rounding are found") {
  check_found(check_banned_calls, "sync/a.cpp", "auto t = std::chrono::steady_clock::now();\n",
              "sync/a.cpp:1: ");
  check_found(check_banned_calls, "sync/a.cpp", "std::random_device seed;\n", "sync/a.cpp:1: ");
  check_found(check_banned_calls, "sync/a.cpp", "int i = rand();\n", "sync/a.cpp:1: ");
  check_found(check_banned_calls, "sync/a.cpp", "std::this_thread::sleep_for(d);\n", "sync/a.cpp:1: ");
  check_found(check_banned_calls, "sync/a.cpp", "std::shared_ptr<int> p;\n", "sync/a.cpp:1: ");
  check_found(check_banned_calls, "sync/a.cpp", "auto now = time(nullptr);\n", "sync/a.cpp:1: ");
  check_found(check_banned_calls, "devices/a.cpp", "double y = std::log1p(x);\n", "devices/a.cpp:1: ");
  check_nothing(check_banned_calls, "devices/a.cpp", "double y = std::sqrt(x);\n");
  check_nothing(check_banned_calls, "sync/a.cpp",
                "// steady_clock\nauto s = \"rand()\"; int operand(int);\n");
  check_nothing(check_banned_calls, "runtime/process/runner.cpp", "std::this_thread::sleep_for(d);\n");
}

TEST_CASE("Tree: production code that refers to simulation is found") {
  check_found(check_simulation_words, "sync/a.cpp", "if (simulated) return;\n", "sync/a.cpp:1: ");
  check_found(check_simulation_words, "sync/a.cpp", "// Under the virtual clock this waits.\n",
              "sync/a.cpp:1: ");
  check_found(check_simulation_words, "sync/a.cpp", "VirtualClock clock;\n", "sync/a.cpp:1: ");
  check_found(check_simulation_words, "runtime/a.h", "#include \"devices/modeled_device.h\"\n",
              "runtime/a.h:1: ");
  check_nothing(check_simulation_words, "sync/a.h", "virtual void f() = 0; // the kernel's virtual memory\n");
  check_nothing(check_simulation_words, "runtime/wiring/simulation.cpp", "VirtualClock clock;\n");
}

TEST_CASE("Tree: metrics that are not listed, of another kind, or never set are found") {
  check_found(check_metric_names, "sync/a.cpp", "sink.counter(\"bytes_total\");\n", "sync/a.cpp:1: ");
  check_found(check_metric_names, "sync/a.cpp", "sink.gauge(\"rows_total\");\n", "sync/a.cpp:1: ");
  check_found(check_metric_names, "core/metrics.def",
              "RIVULET_METRIC(counter, rows_total, \"Rows.\")\nRIVULET_METRIC(gauge, unused, \"Nothing.\")\n",
              "core/metrics.def: no code sets the gauge unused");
}

TEST_CASE("Tree: a file of more than 400 lines is found") {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "int a;\n";
  check_nothing(check_file_lengths, "sync/a.cpp", text);
  check_found(check_file_lengths, "sync/a.cpp", text + "int b;\n", "sync/a.cpp: 401 lines");
}

TEST_CASE("Tree: a catalog's file without an entry, and a mention of an entry elsewhere, are found") {
  check_found(check_catalogs, "stream/decoder/csv.cpp", "extern const DecoderEntry decoder_cvs;\n",
              "stream/decoder/csv.cpp: ");
  check_found(check_catalogs, "runtime/a.cpp", "use(stream::decoder_raw);\n", "runtime/a.cpp: ");
}

TEST_CASE("Tree: LibTorch after doctest, and a unit test that sleeps, are found") {
  check_found(check_tests, "tests/unit/b_test.cpp",
              "#include <doctest/doctest.h>\n#include <torch/torch.h>\n", "tests/unit/b_test.cpp:2: ");
  check_found(check_tests, "tests/unit/b_test.cpp", "std::this_thread::sleep_for(d);\n",
              "tests/unit/b_test.cpp:1: ");
  check_nothing(check_tests, "tests/integration/b_test.cpp", "std::this_thread::sleep_for(d);\n");
}

TEST_CASE("Tree: stream, buffer, devices and sync do not include each other") {
  check_real_tree(check_include_arrows);
}
TEST_CASE("Tree: third-party headers stay behind their doors") {
  check_real_tree(check_third_party_doors);
}
TEST_CASE("Tree: time, chance and waiting come from where they may") {
  check_real_tree(check_banned_calls);
}
TEST_CASE("Tree: only simulation's own files know about it") {
  check_real_tree(check_simulation_words);
}
TEST_CASE("Tree: metrics in code and metrics in the list are the same") {
  check_real_tree(check_metric_names);
}
TEST_CASE("Tree: files stay short") {
  check_real_tree(check_file_lengths);
}
TEST_CASE("Tree: catalogs grow by files alone") {
  check_real_tree(check_catalogs);
}
TEST_CASE("Tree: entries of catalogs are named by their own files alone") {
  check_real_tree(check_entry_names);
}
TEST_CASE("Tree: tests include in the right order and do not sleep") {
  check_real_tree(check_tests);
}
