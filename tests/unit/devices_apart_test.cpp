// What is done in a process apart, what a zip file unpacks to, and words that a script's failure comes with.
#include "devices/apart.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "core/clock.h"
#include "core/rng.h"
#include "devices/script_words.h"
#include "devices/zip_size.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::devices;
using namespace rivulet::testing;

namespace {

/// Never returns.
Result<std::string> forever() {
  for (;;) pause();
}

std::string little(std::uint64_t number, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xFFU);
  return out;
}

/// An entry of a zip file's directory, `unpacked` in its own 32 bits, with an extra field.
std::string entry(std::uint64_t unpacked, const std::string& extra = "") {
  return "PK\1\2" + std::string(16, '\0') + little(7, 4) + little(unpacked, 4) + little(4, 2) +
         little(extra.size(), 2) + little(3, 2) + std::string(12, '\0') + "name" + extra + "say";
}

std::string end_record(std::uint64_t entries, std::uint64_t begin) {
  return "PK\5\6" + std::string(4, '\0') + little(entries, 2) + little(entries, 2) + little(0, 4) +
         little(begin, 4) + little(0, 2);
}

std::string zip_of(const std::string& directory, std::uint64_t entries) {
  return "data" + directory + end_record(entries, 4);
}

std::string large_extra(std::uint64_t unpacked) {
  return little(9, 2) + little(2, 2) + "??" + little(1, 2) + little(8, 2) + little(unpacked, 8);
}

/// A directory whose place stands in 64 bits.
std::string large_zip(const std::string& directory, std::uint64_t entries) {
  const std::uint64_t at = 4 + directory.size();
  const std::string large =
      "PK\6\6" + std::string(28, '\0') + little(entries, 8) + little(0, 8) + little(4, 8);
  return "data" + directory + large + "PK\6\7" + std::string(4, '\0') + little(at, 8) + std::string(4, '\0') +
         end_record(0xFFFF, 0xFFFFFFFF);
}

}  // namespace

TEST_CASE("Apart: what a body says comes back, an error with its code") {
  std::string large(300'000, 'x');
  large[7] = '\0';
  CHECK(apart([&] { return Result<std::string>(large); }, {}).value() == large);
  CHECK(apart([] { return Result<std::string>(""); }, {}).value().empty());
  const auto error = apart([] { return Result<std::string>(Error{ErrorCode::numeric, "odd"}); }, {});
  REQUIRE(!error);
  CHECK(error.error().code == ErrorCode::numeric);
  CHECK(error.error().message == "odd");
}

TEST_CASE("Apart: what ends its process is an error that says how") {
  const auto killed = apart(
      []() -> Result<std::string> {
        raise(SIGKILL);
        return std::string();
      },
      {});
  REQUIRE(!killed);
  CHECK(contains(killed.error().message, "Killed"));
  CHECK(killed.error().code == ErrorCode::unavailable);  // the machine may have been short of memory
  const auto gone = apart([]() -> Result<std::string> { _exit(0); }, {});
  REQUIRE(!gone);
  CHECK(gone.error().code == ErrorCode::protocol);
}

TEST_CASE("Apart: a terminal's and a service manager's signals are for the caller alone") {
  const auto said = apart(
      []() -> Result<std::string> {
        for (const int number : {SIGINT, SIGTERM, SIGHUP}) raise(number);
        return std::string("still here");
      },
      {});
  REQUIRE(said);
  CHECK(said.value() == "still here");
}

TEST_CASE(
    "Apart: who does not answer is ended, at the deadline or when asked to stop, and leaves no process") {
  const auto late = apart(forever, {.deadline = std::chrono::milliseconds(50)});
  REQUIRE(!late);
  CHECK(late.error().code == ErrorCode::timed_out);
  const std::atomic<int> stop{1};
  const auto stopped = apart(forever, {.deadline = std::chrono::hours(1), .stop = &stop});
  REQUIRE(!stopped);
  CHECK(stopped.error().code == ErrorCode::cancelled);
  CHECK(waitpid(-1, nullptr, WNOHANG) == -1);
}

TEST_CASE("Zip: the sizes of all entries are added, also those of 64 bits") {
  CHECK(unpacked_bytes(zip_of("", 0)) == 0);
  CHECK(unpacked_bytes(zip_of(entry(5) + entry(900'000'000), 2)) == 900'000'005);
  CHECK(unpacked_bytes(zip_of(entry(5) + entry(0xFFFFFFFF, large_extra(1ULL << 40U)), 2)) ==
        (1ULL << 40U) + 5);
  CHECK(unpacked_bytes(large_zip(entry(5) + entry(6), 2)) == 11);
  // More than any number is as much as there is.
  const auto most = entry(0xFFFFFFFF, large_extra(~0ULL));
  CHECK(unpacked_bytes(zip_of(most + most, 2)) == ~0ULL);
}

TEST_CASE("Zip: an entry is found by the end of its name, in a whole directory only") {
  CHECK(has_entry(zip_of(entry(5), 1), "ame"));
  CHECK(has_entry(zip_of(entry(5) + entry(6), 2), "name"));
  CHECK_FALSE(has_entry(zip_of(entry(5), 1), "names"));
  CHECK_FALSE(has_entry(zip_of(entry(5), 2), "name"));
  CHECK_FALSE(has_entry("no zip file, but longer than the record at the end of one", "one"));
}

TEST_CASE("Zip: what is no zip file, or not whole, has no size, and nothing is read beyond its end") {
  CHECK_FALSE(unpacked_bytes(""));
  CHECK_FALSE(unpacked_bytes("no zip file, but longer than the record at the end of one"));
  CHECK_FALSE(unpacked_bytes(zip_of(entry(5), 2)));                 // one is missing
  CHECK_FALSE(unpacked_bytes(zip_of(entry(0xFFFFFFFF), 1)));        // its size stands nowhere
  CHECK_FALSE(unpacked_bytes("data" + end_record(1, 0xFFFFFFF0)));  // far away
  CHECK_FALSE(unpacked_bytes(large_zip(entry(5), ~0ULL)));
  for (const std::string& whole :
       {zip_of(entry(5) + entry(0xFFFFFFFF, large_extra(9)), 2), large_zip(entry(5), 1)}) {
    for (std::size_t size = 0; size < whole.size(); ++size)
      CHECK_FALSE(unpacked_bytes(std::string(whole, 0, size)));
    Rng rng(11);
    for (int i = 0; i < 20'000; ++i) {
      std::string broken = whole;
      for (int n = 0; n < 3; ++n) broken[rng.below(broken.size())] = static_cast<char>(rng.below(256));
      static_cast<void>(unpacked_bytes(broken));  // for a sanitizer to watch
    }
  }
}

TEST_CASE("Script's words: the reason comes first, then the last place, in one short line") {
  const std::string said =
      "The following operation failed in the TorchScript interpreter.\n"
      "Traceback of TorchScript, serialized code (most recent call last):\n"
      "  File \"code/__torch__/Net.py\", line 9, in forward\n    x = f(x)\n        ~ <--- HERE\n"
      "Traceback of TorchScript, original code (most recent call last):\n"
      "  File \"net.py\", line 3, in forward\n    x = f(x)\n        ~ <--- HERE\n"
      "RuntimeError: shapes \x1b[2J cannot\n  be multiplied\n";
  CHECK(readable(said) ==
        "RuntimeError: shapes \\u001b[2J cannot be multiplied (File \"net.py\", line 3, in forward)");
  CHECK(readable("  plain\nwords ") == "plain words");
  CHECK(readable("").empty());
  CHECK(readable(said + std::string(9000, 'x')).size() <= 500);
  CHECK(contains(readable(said + std::string(9000, 'x')), "line 3, in forward)"));
  CHECK(readable("Traceback of TorchScript <--- HERE") == "Traceback of TorchScript <--- HERE");
}
