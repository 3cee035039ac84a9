#include <doctest/doctest.h>

#include "core/nearest.h"
#include "core/printable.h"
#include "runtime/cli/progress_line.h"
#include "runtime/cli/text.h"

using namespace rivulet;
using namespace rivulet::runtime::cli;

TEST_CASE("Text: a terminal is sent no control character of others") {
  CHECK(printable("plain, ä, 日本, 🙂") == "plain, ä, 日本, 🙂");
  CHECK(printable("a\nb\tc\x1b[2J\x7f") == "a\\nb\\tc\\u001b[2J\\u007f");
  CHECK(printable(std::string_view("\0x", 2)) == "\\u0000x");
  CHECK(printable("\xc2\x9b"
                  "31m\xc2\xa0|\xc2\x80\xc2\x9f") == "\\u009b31m\xc2\xa0|\\u0080\\u009f");
}

TEST_CASE("Command line: a slip finds the word that was meant, another word finds nothing") {
  const std::vector<std::string> words = {"run",  "demo",     "feed",   "broker",
                                          "peek", "validate", "doctor", "version"};
  CHECK(nearest("demmo", words) == "demo");
  CHECK(nearest("valdate", words) == "validate");
  CHECK(nearest("rnu", words) == "run");
  CHECK(nearest("doktor", words) == "doctor");
  CHECK(nearest("--confg", {"--config", "--set"}) == "--config");
  CHECK(nearest("kubernetes", words) == "");
  CHECK(nearest("zz", words) == "");
  CHECK(nearest("x", {}) == "");
}

TEST_CASE("Command line: numbers, bytes and seconds are printed for people") {
  CHECK(grouped(0) == "0");
  CHECK(grouped(999) == "999");
  CHECK(grouped(1000) == "1 000");
  CHECK(grouped(1234567) == "1 234 567");
  CHECK(human_bytes(0) == "0 B");
  CHECK(human_bytes(999) == "999 B");
  CHECK(human_bytes(1234567) == "1.2 MB");
  CHECK(human_bytes(123456789) == "123 MB");
  CHECK(human_seconds(0.012) == "12 ms");
  CHECK(human_seconds(6.13) == "6.1 s");
  CHECK(human_seconds(59.6) == "60 s");
  CHECK(human_seconds(150) == "2 min 30 s");
}

TEST_CASE("Command line: rates are numbers from zero up, and a wrong one is named") {
  CHECK(parse_rates("--rates", "800,400,0.5").value() == std::vector<double>{800, 400, 0.5});
  for (const char* wrong : {"", "800,", "a", "-1", "1e999", "nan", "8 0", "100;200"}) {
    CAPTURE(wrong);
    const auto rates = parse_rates("--rates", wrong);
    REQUIRE_FALSE(rates);
    CHECK(rates.error().code == ErrorCode::usage);
    CHECK(rates.error().message.find("--rates") != std::string::npos);
  }
}

TEST_CASE("Command line: a trace is a constant or seconds that grow") {
  using Trace = std::vector<std::pair<double, double>>;
  CHECK(parse_trace("800").value() == Trace{{0, 800}});
  CHECK(parse_trace("0:800,15:200").value() == Trace{{0, 800}, {15, 200}});
  CHECK_FALSE(parse_trace("15:200,0:800"));
  CHECK_FALSE(parse_trace("0:800,15"));  // a bare rate begins at second 0: after another it would go back
  CHECK_FALSE(parse_trace("0:"));
  CHECK_FALSE(parse_trace(":5"));
}

TEST_CASE("Command line: an address is a host and a port that exists") {
  CHECK(parse_address("127.0.0.1:9464").value() == std::pair<std::string, int>{"127.0.0.1", 9464});
  for (const char* wrong : {"", "9464", ":9464", "host:", "host:x", "host:70000", "host:1.5"}) {
    CAPTURE(wrong);
    CHECK_FALSE(parse_address(wrong));
  }
}

TEST_CASE("Command line: a string survives as TOML whatever is in it") {
  CHECK(toml_string("plain") == "\"plain\"");
  CHECK(toml_string("a\"b\\c") == R"("a\"b\\c")");
  CHECK(toml_string("a\nb") == "\"a\\u000ab\"");
}

TEST_CASE(
    "Command line: the chart stands higher where the value is higher, and is blank where nothing is known") {
  const auto lines = area_chart({std::nullopt, 0.0, 0.5, 1.0}, 0, 1, 2, true);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] == "   █");
  CHECK(lines[1] == " ▁██");
  const auto ascii = area_chart({std::nullopt, 0.0, 0.5, 1.0}, 0, 1, 2, false);
  CHECK(ascii[0] == "   #");
  CHECK(ascii[1] == " .##");
  // Values outside the frame are clamped to it.
  CHECK(area_chart({2.0, -1.0}, 0, 1, 1, false)[0] == "#.");
}

TEST_CASE("Command line: a progress bar fills from the left and never overflows") {
  CHECK(progress_bar(0, 4, false) == "[....]");
  CHECK(progress_bar(0.5, 4, false) == "[##..]");
  CHECK(progress_bar(7, 4, false) == "[####]");
  CHECK(progress_bar(-1, 4, true) == "[░░░░]");
}

TEST_CASE("Text: what turns the order of letters round is not printed, its neighbours are") {
  CHECK(printable("a\u202Eb\u202Ac\u2066d\u2069e") == "a\\u202eb\\u202ac\\u2066d\\u2069e");
  CHECK(printable("\u2029\u202F\u2065\u206A\u20AC") == "\u2029\u202F\u2065\u206A\u20AC");
  CHECK(printable("\u009B\u00A0\xE2\x80") == "\\u009b\u00A0\\xe2\\x80");
}

TEST_CASE(
    "Text: bytes that are no UTF-8 are shown as numbers, as a terminal of one byte a letter obeys them") {
  CHECK(printable("a\x9b[31m") == "a\\x9b[31m");
  CHECK(printable("\xc0\x9b\xff") == "\\xc0\\x9b\\xff");  // an overlong ESC is invalid
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half a surrogate
  CHECK(printable("\xf0\x9f\x99\x82\xf4\x90\x80\x80") == "🙂\\xf4\\x90\\x80\\x80");  // above U+10FFFF
}

TEST_CASE("Text: of several lines the ends of lines and tabs stay, a carriage return does not") {
  CHECK(printable_lines("a\n\tb\r\x1b[2J\n") == "a\n\tb\\r\\u001b[2J\n");
}

TEST_CASE("Text: what is not complete yet at the end of a piece is found") {
  CHECK(unfinished_tail("") == 0);
  CHECK(unfinished_tail("ab") == 0);
  CHECK(unfinished_tail("ä") == 0);
  CHECK(unfinished_tail("a\xc3") == 1);
  CHECK(unfinished_tail("a\xe2\x80") == 2);
  CHECK(unfinished_tail("a\xf0\x9f\x99") == 3);
  CHECK(unfinished_tail("🙂") == 0);
  CHECK(unfinished_tail("\x80\x80\x80\x80") == 0);
}
