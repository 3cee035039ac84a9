// How the fold treats devices that do not fit.
#include <doctest/doctest.h>

#include "sync/membership/snapshot.h"
#include "tests/support/fold_script.h"

using namespace rivulet;
using namespace rivulet::sync::membership;
using Script = rivulet::testing::FoldScript;

namespace {

std::uint64_t ignored(const Script& s, Ignored reason) {
  return s.fold.ignored.of(reason);
}

/// a, b and c have formed; c is dead, x has joined with another configuration, and all but c are live.
struct Strange : Script {
  std::map<std::string, std::int64_t> of = form({"a", "b", "c"});
  std::int64_t x = hello("x", 3, "other");
  Strange() {
    for (const auto* id : {"a", "b"}) ready(id, of[id], 2);
    ready("x", x, 2);
  }
  void bring_c() {
    of["c"] = hello("c", 3);
    for (const auto* id : {"a", "b", "c"}) ready(id, of[id], 2);
    ready("x", x, 2);
  }
};

std::vector<std::byte> bytes_of(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

const std::vector<std::string>& owned_by(const Fold& fold, const std::string& device) {
  return fold.view.owners[ranks_of({device}, fold.view.members)[0]];
}

Hello with_state(const Script& s, const std::string& device, const Stamp& stamp) {
  Hello hello = s.fold.devices.at(device).hello;
  hello.nonce = "twin" + std::to_string(s.next);
  hello.has_state = stamp;
  return hello;
}

}  // namespace

TEST_CASE("Fold: who differs from the last view is not counted, and one view closes without it") {
  Strange s;
  CHECK(why_not_closable(s.fold, 3) == AdmissionError{.why = WhyNot::missing, .count = 2, .wanted = 3});
  s.bring_c();
  CHECK_FALSE(why_not_closable(s.fold, 3));
  s.put(Close{"x", s.x, 2});  // it has no right to
  CHECK(s.fold.view.number == 1);
  s.put(Close{"a", s.of["a"], 2});
  CHECK(s.fold.view.number == 2);
  CHECK(s.fold.view.members == std::vector<std::string>{"a", "b", "c"});
  CHECK_FALSE(is_ready(s.fold, s.fold.devices.at("x")));
  CHECK(s.fold.view.config_hash == "h");
  CHECK(owned_by(s.fold, "c") == std::vector<std::string>{"t:c"});
}

TEST_CASE("Fold: the configuration of the last view stands for nobody once no live device has it") {
  Script s;
  s.form({"a", "b"});
  const auto a = s.hello("a", 2, "other");
  const auto b = s.hello("b", 2, "other");
  s.ready("a", a, 2);
  s.ready("b", b, 2);
  CHECK_FALSE(why_not_closable(s.fold, 2));
  s.close("a", a, 2);
  CHECK(s.fold.view.config_hash == "other");
}

TEST_CASE("Fold: a new run sides with nobody before its first view") {
  Script s;
  s.form({"a", "b"});
  s.stop();
  const auto a = s.hello("a", 2, "h", true);
  const auto b = s.hello("b", 2, "other", true);
  s.ready("a", a, 2);
  s.ready("b", b, 2);
  CHECK(why_not_closable(s.fold, 2).why == WhyNot::configuration);
}

TEST_CASE("Fold: a HELLO that cannot serve begins no session while the present one may live") {
  Script s;
  const auto of = s.form({"a", "b"});
  const auto before = s.fold.devices;
  const auto asked = s.put(with_state(s, "a", {9, 5}));
  CHECK(ignored(s, Ignored::refused) == 1);
  CHECK((s.fold.devices == before));
  CHECK(s.fold.last_hello < asked);
  CHECK(view_intact(s.fold));

  Hello again = with_state(s, "a", {9, 5});
  again.unheard_since = asked;
  Script lively = s;
  lively.close("a", of.at("a"), 1);  // it shows that it lives
  lively.put(again);
  CHECK(ignored(lively, Ignored::refused) == 2);
  CHECK(lively.fold.devices.at("a").session == of.at("a"));
  const auto began = s.put(again);  // it does not
  CHECK(s.fold.devices.at("a").session == began);
  CHECK(s.fold.devices.at("a").hello.has_state == std::nullopt);

  Hello earlier = s.fold.devices.at("a").hello;
  earlier.nonce = "names no state";
  const auto newest = s.put(earlier);
  CHECK(s.fold.devices.at("a").session == newest);
}

TEST_CASE("Fold: a record of any kind that counts shows that its session lives") {
  Script s;
  const auto of = s.form({"a", "b"});
  const auto heard = [&](const ControlRecord& record) {
    const auto at = s.put(record);
    return s.fold.devices.at("a").last_seen == at;
  };
  const auto a = of.at("a");
  CHECK(heard(Close{"a", a, 1}));
  CHECK(heard(Saved{"a", a, 1, {1, 1}, "d", "f"}));
  CHECK(heard(Addr{"a", a, s.fold.view.token, "k", {}}));
  CHECK(heard(Ready{"a", a, 2, {}, "", ""}));
  CHECK_FALSE(heard(Ready{"a", a, 7, {}, "", ""}));
  CHECK_FALSE(heard(Ready{"a", a + 1, 2, {}, "", ""}));
  CHECK_FALSE(heard(Ready{"b", of.at("b"), 2, {}, "", ""}));
  CHECK(heard(Leave{"a", a, "asked"}));
}

TEST_CASE("Fold: what a device left for is folded with it, and forgotten with its next session") {
  Script s;
  const auto a = s.hello("a");
  s.put(Leave{"a", a, "nobody has it", WhyNot::lost_state});
  CHECK(s.fold.devices.at("a").left_for == WhyNot::lost_state);
  s.hello("a");
  CHECK(s.fold.devices.at("a").left_for == WhyNot::none);
}

TEST_CASE("Fold: what a record may leave out is read as nothing, and so are unknown causes") {
  const std::string common = R"("version":1,"job":"j","device":"a","session":3)";
  const auto read = [&](const std::string& text) {
    const auto record = decode(bytes_of("{" + common + "," + text + "}"), "j");
    REQUIRE_MESSAGE(record, text);
    return record.value();
  };
  CHECK((read(R"("type":"close","view":2)") == ControlRecord(Close{"a", 3, 2})));
  CHECK((read(R"("type":"leave","reason":"r")") == ControlRecord(Leave{"a", 3, "r"})));
  CHECK((read(R"("type":"leave","reason":"r","cause":"lost_state")") ==
         ControlRecord(Leave{"a", 3, "r", WhyNot::lost_state})));
  CHECK((read(R"("type":"leave","reason":"r","cause":"of another build")") ==
         ControlRecord(Leave{"a", 3, "r"})));
  for (std::size_t i = 0; i < why_nots; ++i) {
    const auto why = static_cast<WhyNot>(i);
    CHECK(why_not_of(name_of(why)) == why);
  }
}

TEST_CASE("Snap: claims of the last view that a device no longer makes are kept") {
  Script s;
  s.form({"a", "b"});
  Hello moved = s.fold.devices.at("b").hello;
  moved.nonce = "again";
  moved.partitions = {"t:other"};
  s.put(moved);
  Snap snap{"a", s.fold.devices.at("a").session, s.fold.next_offset, "", snapshot_of(s.fold)};
  snap.hash = snapshot_hash(snap.fold);
  const auto back = fold_of(snap);
  REQUIRE(back);
  CHECK(owned_by(*back, "b") == std::vector<std::string>{"t:b"});
  CHECK(owned_by(*back, "a") == std::vector<std::string>{"t:a"});
  CHECK((back->view == s.fold.view));
}
