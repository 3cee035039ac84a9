// When a device must write a record: once, again if it was lost, and not before others had their time.
#include "sync/membership/own_records.h"

#include <doctest/doctest.h>

#include "sync/membership/conflict.h"

using namespace rivulet;
using namespace rivulet::sync::membership;
using namespace std::chrono_literals;

namespace {

constexpr TimePoint start{1h};
constexpr Duration retry = 5s;

}  // namespace

TEST_CASE("Own records: one that is not read back is taken for lost after a while") {
  InFlight record;
  CHECK(record.may_send(start, retry));
  record.sent(start);
  CHECK_FALSE(record.may_send(start + 4s, retry));
  CHECK(record.may_send(start + 5s, retry));
  record.read_back();
  CHECK(record.may_send(start + 1s, retry));
}

TEST_CASE("Own session: it begins with its own HELLO, and one that was refused waits for its place") {
  OwnSession session;
  CHECK_FALSE(session.known());
  session.read(7, false);  // another device's, before this one has any
  session.sent_hello(start);
  CHECK_FALSE(session.owes_hello(start + 1s, retry));
  session.read(9, true);
  CHECK(session.offset() == 9);
  session.read(12, true);  // its repetition
  CHECK(session.offset() == 9);
  session.refused(start + 1s);
  CHECK_FALSE(session.known());
  CHECK(session.refused_at() == 9);
  CHECK(session.owes_hello(start + 1s, retry));
  session.read(15, true);
  session.refused(start + 3s);
  CHECK(session.refused_at() == 9);  // it waits since the first
  CHECK(session.waiting_for_place(start + 4s) == 3s);
}

TEST_CASE("Own session: a job that was stopped before it began does not stop it") {
  OwnSession session;
  session.read_stop(5);
  CHECK_FALSE(session.stopped());
  session.read(6, true);
  CHECK_FALSE(session.stopped());
  session.read_stop(7);
  CHECK(session.stopped());
}

TEST_CASE("Own session: a device that asks for it is answered until the answer is read") {
  OwnSession session;
  session.read(3, true);
  CHECK_FALSE(session.owes_answer(3, start, 1s));
  session.read(8, false);
  CHECK(session.owes_answer(3, start, 1s));
  session.sent_answer(start);
  CHECK_FALSE(session.owes_answer(3, start, 1s));
  CHECK(session.owes_answer(3, start + 1s, 1s));
  CHECK_FALSE(session.owes_answer(9, start + 1s, 1s));
  CHECK_FALSE(session.owes_answer(3, start + 9s, 1s));  // the requester is gone
}

TEST_CASE("Saved states: the last one is repeated until it is read back or the view is over") {
  SavedNotice saved;
  CHECK(saved.again(start, retry) == nullptr);
  Saved first;
  first.stamp.step = 4;
  CHECK(saved.announce(first).stamp.step == 4);
  CHECK(saved.pending());
  CHECK(saved.again(start, retry) == nullptr);
  CHECK(saved.again(start + 4s, retry) == nullptr);
  REQUIRE(saved.again(start + 5s, retry) != nullptr);
  CHECK(saved.again(start + 6s, retry) == nullptr);
  Saved other = first;
  other.stamp.step = 3;
  saved.read(other);  // an earlier one
  CHECK(saved.pending());
  saved.read(first);
  CHECK_FALSE(saved.pending());
  CHECK(saved.announced() == 2);
  saved.announce(first);
  saved.leave_view();
  CHECK(saved.again(start + 1min, retry) == nullptr);
}

TEST_CASE("Closing: the first member closes at once, others one after the other when it does not") {
  Closing closing;
  const Closing::Patience patience{0s, 1s, retry};
  CHECK(closing.due({3, 10, 12}, 0, start, patience));
  CHECK_FALSE(closing.due({3, 10, 12}, 1, start, patience));
  CHECK(closing.due({3, 10, 12}, 1, start + 1s, patience));
  CHECK_FALSE(closing.due({3, 10, 12}, 3, start + 1s, patience));
  CHECK(closing.due({3, 10, 12}, 3, start + 1100ms, patience));
  closing.sent({3, 10, 12}, start + 1s);
  CHECK_FALSE(closing.due({3, 10, 12}, 1, start + 2s, patience));
  CHECK(closing.due({3, 11, 12}, 1, start + 2s, patience));  // also holds for a newcomer
  CHECK(closing.due({3, 10, 12}, 1, start + 6s, patience));
  closing.cannot();
  CHECK_FALSE(closing.due({3, 12, 13}, 1, start + 7s, patience));
}

TEST_CASE("Closing: a view waits for others since it last grew, and then for its first member") {
  Closing closing;
  const Closing::Patience patience{250ms, 1s, retry};
  CHECK_FALSE(closing.due({3, 2, 12}, 0, start, patience));
  CHECK_FALSE(closing.due({3, 3, 14}, 0, start + 200ms, patience));  // another one is ready
  CHECK_FALSE(closing.due({3, 3, 14}, 0, start + 400ms, patience));
  CHECK(closing.due({3, 3, 14}, 0, start + 450ms, patience));
  CHECK_FALSE(closing.due({3, 3, 14}, 1, start + 1400ms, patience));
  CHECK(closing.due({3, 3, 14}, 1, start + 1450ms, patience));
}

TEST_CASE("Closing: a device that is ready again and again holds nobody up; a view that goes on does") {
  Closing closing;
  const Closing::Patience patience{5s, 1s, retry};
  CHECK_FALSE(closing.due({3, 3, 12}, 0, start, patience));
  closing.cannot();  // all are asked again
  CHECK_FALSE(closing.due({3, 2, 16}, 0, start + 3s, patience));
  CHECK_FALSE(closing.due({3, 3, 17}, 0, start + 3s, patience));
  CHECK(closing.due({3, 3, 20}, 0, start + 5s, patience));
  closing.must_not();
  CHECK_FALSE(closing.due({3, 3, 30}, 0, start + 60s, patience));
  CHECK_FALSE(closing.due({4, 2, 31}, 0, start + 65s, patience));
}

TEST_CASE("Conflict: it must last without a break, and all end only by one that is of all") {
  Conflict conflict;
  const AdmissionError why{.why = WhyNot::lost_state};
  CHECK_FALSE(conflict.lasts(why, true, start, 3s));
  CHECK(conflict.ends_all());
  conflict.over();
  CHECK_FALSE(conflict.ends_all());
  CHECK_FALSE(conflict.lasts(why, false, start + 3s, 3s));
  CHECK_FALSE(conflict.ends_all());
  CHECK(conflict.lasts(why, true, start + 6s, 3s));
  CHECK(conflict.cause_for_all() == WhyNot::none);
  conflict.end();
  CHECK(conflict.cause_for_all() == WhyNot::lost_state);
}
