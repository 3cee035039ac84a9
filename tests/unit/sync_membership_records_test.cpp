#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <string_view>

#include "core/rng.h"
#include "sync/membership/records.h"
#include "tests/support/text.h"

using namespace rivulet;
using namespace rivulet::sync::membership;
using rivulet::testing::bytes_of_text;

namespace {

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Hello a_hello() {
  Hello hello{"edge-1", "0123abcd", "host.local", 4711, 4, "deadbeef", {}, {"mnist:0", "mnist:1"}};
  hello.config = {{"batch.tick", "\"100ms\""}, {"job.devices", "4"}};
  return hello;
}

std::string why(std::string_view text) {
  const auto record = decode(bytes_of_text(text), "mnist");
  return record ? "accepted" : record.error().message;
}

}  // namespace

TEST_CASE("Control records: every kind comes back as it was written") {
  Addr addr{"edge-2", 7, 9, "rank0", {}};
  Hello new_run = a_hello();
  new_run.new_run = true;
  for (int size = 0; size < 10; ++size) {
    const ControlRecord records[] = {a_hello(),
                                     Ready{"edge-1", 3, 2, 1, 77, "ab", "peer edge-2 is lost"},
                                     Close{"edge-1", 3, 2},
                                     Saved{"edge-1", 3, 2, {2, 500}, "ab", "cd"},
                                     addr,
                                     new_run,
                                     Ready{"edge-1", 3, 2, 1, 77, "ab", "", 9000, true},
                                     Ready{"edge-1", 3, 2, 1, 77, "ab", "", 0, false, true},
                                     Leave{"edge-1", 3, "asked to end"},
                                     Leave{"edge-1", 3, "asked to end", WhyNot::none, Ends::device},
                                     Leave{"edge-1", 3, "ended", WhyNot::none, Ends::group},
                                     Stop{"0123abcd", "host.local", 4711},
                                     Snap{"edge-1", 3, 1000, "ab", "{\"view\":{}}"}};
    for (const auto& record : records) {
      const auto bytes = encode(record, "mnist");
      REQUIRE(bytes);
      const auto back = decode(bytes.value(), "mnist");
      REQUIRE(back);
      CHECK((back.value() == record));
    }
    addr.value.push_back(static_cast<std::byte>(size * 37 + 200));
  }
}

TEST_CASE("Control records: the bytes of a HELLO, which later versions must still read") {
  const auto bytes = encode(Close{"edge-1", 3, 2}, "mnist");
  REQUIRE(bytes);
  CHECK(text_of(bytes.value()) ==
        R"({"device":"edge-1","job":"mnist","session":3,"type":"close","version":1,"view":2})");
  const auto addr = encode(Addr{"a", 3, 9, "k", bytes_of_text("hello")}, "m");
  REQUIRE(addr);
  CHECK(
      text_of(addr.value()) ==
      R"({"device":"a","job":"m","key":"k","session":3,"token":9,"type":"addr","value":"aGVsbG8=","version":1})");
}

TEST_CASE("Control records: what may be left out is left out where it is not so") {
  const auto text = [](const ControlRecord& record) { return text_of(encode(record, "m").value()); };
  const std::string ready =
      R"({"device":"a","digest":"d","job":"m","lineage":1,"reason":"","rows":0,"session":3,"step":7,"type":"ready",)";
  CHECK(text(Ready{"a", 3, 2, {1, 7}, "d", ""}) == ready + R"("version":1,"view":2})");
  CHECK(text(Leave{"a", 3, "why"}) ==
        R"({"device":"a","job":"m","reason":"why","session":3,"type":"leave","version":1})");
  const auto leave = decode(bytes_of_text(R"({"version":1,"job":"m","type":"leave","device":"a","session":3,)"
                                          R"("reason":"why","ends":"a word of a later build"})"),
                            "m");
  REQUIRE(leave);
  CHECK(std::get<Leave>(leave.value()).ends == Ends::nothing);
  CHECK(decode(bytes_of_text(ready + R"("version":1,"view":2})"), "m"));
  std::string negative = ready;
  negative.replace(negative.find("\"rows\":0"), 8, "\"rows\":-1");
  CHECK_FALSE(decode(bytes_of_text(negative + R"("version":1,"view":2})"), "m"));
  CHECK_FALSE(decode(bytes_of_text(ready + R"("version":1,"view":2,"limited":"yes"})"), "m"));
}

TEST_CASE("Control records: what is not ours is refused and the message says why") {
  const std::string close = R"({"version":1,"job":"mnist","type":"close","device":"a","session":3,"view":1)";
  CHECK(why(close + "}") == "accepted");
  CHECK(why(close + R"(,"added_later":[1,2]})") == "accepted");
  CHECK(why("") == "control record: not a JSON object");
  CHECK(why("[1,2]") == "control record: not a JSON object");
  CHECK(why(close) == "control record: not a JSON object");
  CHECK(why("{}") == "control record: no version");
  CHECK(why(R"({"version":2,"job":"mnist","type":"close"})") ==
        "control record: version 2, this build supports 1");
  CHECK(why(R"({"version":1,"type":"close"})") == "control record: no job");
  CHECK(why(R"({"version":1,"job":"other","type":"close"})") ==
        "control record: it belongs to a different job");
  CHECK(why(R"({"version":1,"job":"mnist","type":"rollback"})") == "control record: unknown type 'rollback'");
  CHECK(why(R"({"version":1,"job":"mnist","type":7})") == "control record: unknown type ''");
  const std::string head = R"({"version":1,"job":"mnist","type":"close",)";
  const auto field = [](const char* name) {
    return std::string("control record: field '") + name + "' of close is missing or invalid";
  };
  CHECK(why(head + R"("session":3,"view":1})") == field("device"));
  CHECK(why(head + R"("device":"a b","session":3,"view":1})") == field("device"));
  CHECK(why(head + R"("device":"","session":3,"view":1})") == field("device"));
  CHECK(why(head + R"("device":")" + std::string(65, 'a') + R"(","session":3,"view":1})") == field("device"));
  CHECK(why(head + R"("device":"a","session":-3,"view":1})") == field("session"));
  CHECK(why(head + R"("device":"a","session":3,"view":"1"})") == field("view"));
  CHECK(why(head + R"("device":"a","session":3,"view":1.5})") == field("view"));
  CHECK(why(head + R"("device":"a","session":3,"view":9223372036854775807})") == field("view"));
  const std::string addr =
      R"({"version":1,"job":"mnist","type":"addr","device":"a","session":3,"token":4,"key":"k","value":)";
  for (const char* value : {R"("abc")", R"("ab!=")", R"("a===")", R"("aGVsbG9=")", R"("=aaa")", "7"}) {
    CHECK_MESSAGE(why(addr + value + "}") == "control record: field 'value' of addr is missing or invalid",
                  value);
  }
}

TEST_CASE("Control records: sizes are bounded in both directions") {
  Hello hello = a_hello();
  for (int i = 0; i < 400; ++i) hello.partitions.push_back("topic-with-a-long-name-" + std::string(200, 'x'));
  const auto long_hello = encode(hello, "mnist");
  REQUIRE_FALSE(long_hello);
  CHECK(long_hello.error().message.find("bytes, more than the maximum of 65536") != std::string::npos);
  CHECK(why(std::string(record_max_bytes + 1, ' ')) == "control record: too long");
  CHECK(why(std::string(record_max_bytes, '[')) == "control record: not a JSON object");
  const Addr addr{"a", 1, 2, "k", std::vector<std::byte>(16 * 1024 + 1)};
  CHECK_FALSE(encode(addr, "mnist"));
  Hello wide = a_hello();
  wide.config["decode.json.features"] = std::string(9000, 'f');  // every reader would reject it
  const auto refused = encode(wide, "mnist");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("'config'") != std::string::npos);
}

TEST_CASE("Control records: a reason that is not UTF-8 still travels") {
  const auto bytes = encode(Ready{"a", 1, 2, 0, 0, "", "bad \xff byte"}, "mnist");
  REQUIRE(bytes);
  CHECK(decode(bytes.value(), "mnist"));
}

TEST_CASE("Control records: random bytes and damaged records never decode into something else or crash") {
  Rng rng(20240607);
  const auto good = encode(a_hello(), "mnist").value();
  int survived = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::vector<std::byte> noise(rng.below(200));
    for (auto& b : noise) b = static_cast<std::byte>(rng.below(256));
    REQUIRE_FALSE(decode(noise, "mnist"));
    auto damaged = good;
    damaged[rng.below(damaged.size())] ^= static_cast<std::byte>(1U << rng.below(8));
    if (rng.below(4) == 0) damaged.resize(rng.below(damaged.size()));
    if (const auto record = decode(damaged, "mnist")) {
      ++survived;  // a flip inside a value: still a valid HELLO
      REQUIRE(std::holds_alternative<Hello>(record.value()));
    }
  }
  CHECK(survived > 0);
}
