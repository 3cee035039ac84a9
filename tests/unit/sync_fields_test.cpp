// One list of fields per struct: wire bytes, hashes and JSON follow from it, so a missing field would be
// lost.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>

#include "core/row.h"
#include "sync/message/facts.h"
#include "sync/message/field_bytes.h"
#include "sync/message/plan.h"

using namespace rivulet;
using namespace rivulet::sync;

namespace {

struct Anything {
  template <class T>
  operator T() const;  // NOLINT(google-explicit-constructor): stands for a value of any member
};

/// Number of members of an aggregate: the maximum of values in its initializer.
template <class T, class... Values>
constexpr std::size_t members() {
  if constexpr (requires { T{Values{}..., Anything{}}; })
    return members<T, Values..., Anything>();
  else
    return sizeof...(Values);
}

template <class T>
std::size_t listed() {
  T value{};
  std::size_t n = 0;
  fields(value, [&](const char*, auto&) { ++n; });
  return n;
}

template <class T>
std::size_t names() {
  T value{};
  std::set<std::string> seen;
  fields(value, [&](const char* name, auto&) { seen.insert(name); });
  return seen.size();
}

template <class T>
void change(T& value) {
  if constexpr (std::is_same_v<T, bool>)
    value = !value;
  else if constexpr (std::is_enum_v<T>)
    value = static_cast<T>(static_cast<int>(value) ^ 1);
  else if constexpr (std::is_arithmetic_v<T>)
    value = static_cast<T>(value + 1);
  else if constexpr (std::is_same_v<T, Duration>)
    value += Duration(1);
  else if constexpr (HasFields<T>)
    fields(value, [first = true](const char*, auto& member) mutable {
      if (std::exchange(first, false)) change(member);
    });
  else if constexpr (requires { value.has_value(); })
    value = value ? T() : T(std::in_place);
  else
    value.resize(value.size() + 1);
}

/// Calls check(name, value) with one field changed at a time.
template <class T>
void with_each_changed(const T& base, auto check) {
  for (std::size_t wanted = 0; wanted < listed<T>(); ++wanted) {
    T changed = base;
    std::size_t at = 0;
    std::string name;
    fields(changed, [&](const char* field, auto& member) {
      if (at++ != wanted) return;
      name = field;
      change(member);
    });
    check(name, changed);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("Fields: each member is in its list, once and under a name of its own", T, PartitionId,
                   RowCursor, RowInterval, SkippedRange, Digest, Facts, FactsSection, policy::Decision,
                   policy::Schedule, policy::Way, policy::LocalSchedule, policy::EarlySync, policy::Injection,
                   policy::RoundPlan, policy::PolicyConfig, policy::PolicyState) {
  CHECK(listed<T>() == members<T>());
  CHECK(names<T>() == members<T>());
}

TEST_CASE("Fields: bytes that were written are read, and every cut is seen") {
  policy::RoundPlan plan;
  plan.now = {policy::Mode::delta, {0.25, 0.75}, 0.5, true, false, {1}};
  plan.next.rows = {7, 9};
  plan.next.wait = std::chrono::milliseconds(250);
  plan.next.way.compressor = "top-k";
  plan.next.local = policy::LocalSchedule{.steps = 3, .early = policy::EarlySync{0.5, 0.25}};
  plan.why = "because";
  const auto bytes = bytes_of_fields(plan);
  policy::RoundPlan again;
  FieldReader in(bytes);
  in.get(again);
  CHECK(in.fine());
  CHECK(in.empty());
  CHECK(again == plan);
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    FieldReader cut{std::span(bytes).first(n)};
    policy::RoundPlan part;
    cut.get(part);
    CHECK_FALSE(cut.fine());
  }
}

TEST_CASE("Fields: a list is not made as long as its count says, but as there are bytes") {
  const auto bytes = bytes_of_fields(std::uint32_t{0xffffffff});
  std::vector<RowInterval> items;
  FieldReader in(bytes);
  in.get(items);
  CHECK_FALSE(in.fine());
  CHECK(items.empty());
}

TEST_CASE("Fields: every field of a plan but its words is in its hash") {
  const policy::RoundPlan plan;
  const auto differs = [&](const std::string& name, const policy::RoundPlan& other) {
    CAPTURE(name);
    CHECK(hash_of(other, 1) != hash_of(plan, 1));
  };
  with_each_changed(plan.now, [&](const std::string& name, const policy::Decision& now) {
    differs(name, policy::RoundPlan{now, plan.next, ""});
  });
  with_each_changed(plan.next, [&](const std::string& name, const policy::Schedule& next) {
    differs(name, policy::RoundPlan{plan.now, next, ""});
  });
  CHECK(hash_of(plan, 2) != hash_of(plan, 1));
  CHECK(hash_of(policy::RoundPlan{plan.now, plan.next, "otherwise"}, 1) == hash_of(plan, 1));
}

TEST_CASE("Fields: every fact but those that say where it belongs is in the hash of its table") {
  FactsTable table;
  table.facts.resize(1);
  table.sections.resize(1);
  table.facts[0].flags = flag_digest;
  const std::set<std::string> places{"view", "round", "rank", "section_bytes"};
  with_each_changed(table.facts[0], [&](const std::string& name, const Facts& facts) {
    CAPTURE(name);
    FactsTable other = table;
    other.facts[0] = facts;
    CHECK((hash_of(other) == hash_of(table)) == places.contains(name));
  });
  with_each_changed(table.sections[0], [&](const std::string& name, const FactsSection& section) {
    CAPTURE(name);
    FactsTable other = table;
    other.sections[0] = section;
    CHECK(hash_of(other) != hash_of(table));
  });
}
