// A device's local steps: their start, their effects, and their undoing.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "core/clock.h"
#include "devices/normalizer.h"
#include "runtime/train/local_model.h"
#include "runtime/train/make_step.h"
#include "runtime/train/measurements.h"
#include "tests/support/model_fixture.h"
#include "tests/support/sgd.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

struct Bench {
  explicit Bench(bool normalizes = false)
      : trainer(devices::make_normalizing(make_trainer(config, *device), *device,
                                          {.features = normalizes ? columns : 0, .linear_first = true})) {
    for (devices::Column& c : state.model.columns())
      c = {.rows = 1000, .mean = 0, .variance = 1, .shown_mean = 0, .shown_deviation = 1};
  }
  VirtualClock clock;
  std::unique_ptr<devices::Device> device = devices::make_host_device();
  devices::ModelConfig config = config_of("linear");
  const std::size_t columns = RowShape{config.input, 1}.columns();
  std::unique_ptr<devices::Trainer> trainer;
  AgreedState state{make_state(*trainer, *device, 7), {1, 100}, 5000, {}};
  Rows rows{config, 64, 3};
  LocalIntervals intervals;
  std::unique_ptr<LocalModel> model =
      LocalModel::create({clock, *device, *trainer, devices::config_of(devices::SgdConfig{}), intervals})
          .value();

  void step(std::size_t first) {
    model->invalidate();
    REQUIRE(model->compute(rows.view(first, 8), 8, state));
    REQUIRE(model->step(state, 8, 1.0));
    model->own().add(model->report(), std::vector<RowTag>(8), 0.01, clock.now());
  }
  /// Counted hits and loss of N rows of a batch of eight, batch after batch.
  [[nodiscard]] std::pair<double, double> counted(std::size_t rows_of_batch) {
    double hits = 0, loss = 0;
    for (std::size_t first = 0; first < 64; first += 8) {
      model->invalidate();
      REQUIRE(model->compute(rows.view(first, 8), rows_of_batch, state));
      CHECK(model->report().rows == rows_of_batch);
      CHECK(model->report().correct <= rows_of_batch);
      hits += static_cast<double>(model->report().correct);
      loss += model->report().loss_sum;
    }
    return {hits, loss};
  }
  std::vector<double> delta() {
    REQUIRE(model->prepare_delta(state));
    return numbers_of(model->contribution().slice(0, trainer->layout().parameters));
  }
  /// As in a group of one: the sum is its own delta.
  void agree() {
    static_cast<void>(delta());
    state.rows += model->own().rows();
    apply();
    model->agreed(state, true, {});
  }
  /// Applies the last prepared delta to the state.
  void apply() {
    auto parameters = state.model.parameters().as<float>();
    const auto moved = model->contribution().as<float>();
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= moved[i];
    state.stamp.step += 1;
  }
  [[nodiscard]] PrivatePart part() const {
    PrivatePart part{.local_steps = model->kept_steps()};
    for (const auto array : model->kept()) part.local_arrays.emplace_back(array.begin(), array.end());
    return part;
  }
};

double size_of(const std::vector<double>& numbers) {
  double most = 0;
  for (const double x : numbers) most = std::max(most, std::abs(x));
  return most;
}

}  // namespace

TEST_CASE("Local model: of batches with copies, hits and loss are counted by their share, to a hit") {
  Bench bench;
  const auto [hits, loss] = bench.counted(8);
  REQUIRE(hits > 4);
  for (const std::size_t part : {1U, 3U, 7U}) {
    INFO(part);
    const auto [some_hits, some_loss] = bench.counted(part);
    CHECK(std::abs(some_hits - hits * static_cast<double>(part) / 8) < 1);
    CHECK(some_loss == doctest::Approx(loss * static_cast<double>(part) / 8));
  }
}

TEST_CASE("Local steps: go from the reference, and start from it again when the group has agreed") {
  Bench b;
  CHECK(size_of(b.delta()) == 0);
  b.step(0);
  b.step(8);
  CHECK(b.model->own().rows() == 16);
  CHECK(b.model->own().steps() == 2);
  CHECK(size_of(b.delta()) > 1e-3);
  b.agree();
  CHECK(b.model->own().rows() == 0);
  CHECK(size_of(b.delta()) == 0);
}

/// Optimizer memory after a synchronization during local steps, in which columns have moved or not.
std::vector<float> momentum_behind(bool moved, bool departs) {
  Bench b(true);
  b.step(0);
  b.step(8);
  static_cast<void>(b.delta());
  if (departs) {
    b.model->depart();
    b.step(16);
  }
  b.apply();
  if (moved) b.state.model.columns()[0].shown_deviation = 2;
  if (moved) b.state.model.columns()[1].shown_mean = 0.5;
  REQUIRE(b.model->agreed(b.state, true, {}));
  const auto bytes = b.model->kept().front();
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  // It continues from there: a repetition gives the same distance.
  const auto again = [&] {
    b.model->roll_back(b.state);
    b.step(24);
    return b.delta();
  };
  const auto once = again();
  CHECK(size_of(once) > 0);
  CHECK(again() == once);
  return numbers;
}

TEST_CASE(
    "Local steps: momentum follows columns that the group has moved, also of a movement that has left") {
  for (const bool departs : {false, true}) {
    CAPTURE(departs);
    const auto was = momentum_behind(false, departs);
    const auto is = momentum_behind(true, departs);
    const Bench b(true);
    const std::size_t outputs = b.trainer->layout().parameter_slots[1].count;
    for (std::size_t o = 0; o < outputs; ++o) {
      const std::size_t row = o * b.columns;
      CHECK(is[row] == doctest::Approx(2 * was[row]));
      CHECK(is[row + 1] == was[row + 1]);
      const std::size_t bias = outputs * b.columns + o;
      CHECK(is[bias] == doctest::Approx(was[bias] + 0.5 * was[row + 1]).epsilon(1e-4));
    }
  }
}

TEST_CASE("Local steps: the momentum goes on over an agreement, as over the steps of one device") {
  Bench apart;
  Bench whole;
  for (std::size_t i = 0; i < 6; ++i) {
    apart.step(8 * i);
    whole.step(8 * i);
    if (i % 2 == 1) apart.agree();
  }
  whole.agree();
  CHECK(relative_l2(numbers_of(apart.state.model.parameters()), numbers_of(whole.state.model.parameters())) <
        1e-6);
  CHECK(apart.model->kept_steps() == 6);  // from the start of its memory
}

TEST_CASE("Local steps: what leaves takes its momentum along, what stays keeps it, also after a lost view") {
  for (const bool adopted : {false, true}) {
    Bench b;
    b.step(0);
    static_cast<void>(b.delta());
    std::vector<float> left(b.trainer->layout().parameters);
    left[3] = -0.5F;
    const GradientView marks{reinterpret_cast<std::byte*>(left.data()), left.size()};
    const Stamp before = b.state.stamp;
    ++b.state.stamp.step;
    if (adopted)
      b.model->adopt(b.state, before, b.state.rows - 8, marks);
    else
      b.model->agreed(b.state, true, marks);
    std::vector<float> momentum(left.size());
    const auto kept = b.model->kept();
    std::memcpy(momentum.data(), kept[0].data(), kept[0].size());
    CHECK(momentum[3] == 0);
    CHECK(std::count(momentum.begin(), momentum.end(), 0.0F) < std::ssize(momentum) / 2);
  }
}

TEST_CASE(
    "Local steps: the group forgets the momentum that its devices keep, and a gradient step takes it back") {
  Bench b;
  const auto momentum = b.state.model.optimizer_array(0).as<float>();
  std::ranges::fill(momentum, 1.0F);
  sync::FactsTable table;
  table.facts.resize(1);
  table.sections.resize(1);
  sync::policy::Decision decision;
  decision.mode = sync::policy::Mode::delta;
  const auto optimizer = devices::config_of(devices::SgdConfig{});
  const std::vector<sync::policy::ControllerMemory> memory;
  std::vector<float> sum(b.trainer->layout().contribution(), 0.5F);
  const GradientView view{reinterpret_cast<std::byte*>(sum.data()), sum.size()};
  REQUIRE(make_step(b.state, {optimizer, *b.device, table, decision, memory, 1}, view));
  for (const float x : momentum) CHECK(x == 0);
  decision.mode = sync::policy::Mode::gradients;
  b.step(0);
  REQUIRE(make_step(b.state, {optimizer, *b.device, table, decision, memory, 1}, view));
  for (const float x : momentum) CHECK(x == 0.5F);
  b.model->follow_group();
  CHECK(b.model->own().rows() == 0);
  CHECK(b.model->kept_digest() == 0);
}

TEST_CASE("Local steps: go on while the group agrees, as if it had agreed at once") {
  Bench apart;
  Bench whole;
  for (std::size_t i = 0; i < 7; ++i) {
    apart.step(8 * i);
    whole.step(8 * i);
    if (i == 3) {
      static_cast<void>(apart.delta());
      apart.model->depart();
      CHECK(apart.model->departed());
      CHECK(apart.model->own().rows() == 0);
    }
    if (i == 5) {
      apart.apply();
      CHECK(apart.model->agreed(apart.state, true, {}));
      CHECK(!apart.model->departed());
      CHECK(apart.model->own().ahead() == 2);
      CHECK(apart.model->own().steps() == 2);
      CHECK(apart.model->kept_steps() == 4);  // those that the state includes
    }
  }
  CHECK(apart.model->own().steps() == 3);
  apart.agree();
  whole.agree();
  CHECK(relative_l2(numbers_of(apart.state.model.parameters()), numbers_of(whole.state.model.parameters())) <
        1e-6);
}

TEST_CASE("Local steps: that have gone on are undone with the others, to the last agreement") {
  Bench b;
  b.step(0);
  b.agree();
  const auto kept = b.model->kept_digest();
  b.step(8);
  const auto moved = b.delta();
  b.model->depart();
  b.step(16);
  SUBCASE("a lost view") {
    b.model->roll_back(b.state);
  }
  SUBCASE("a sum that was not a number") {
    CHECK(!b.model->agreed(b.state, false, {}));
  }
  CHECK(b.model->kept_digest() == kept);
  CHECK(size_of(b.delta()) == 0);
  b.step(8);
  CHECK(b.delta() == moved);
  CHECK(b.model->own().ahead() == 0);
}

TEST_CASE("Local steps: a replay makes those that have gone on from where they did, to the last bit") {
  Bench first;
  Bench again;
  ModelPoint departure;
  for (Bench* b : {&first, &again}) {
    b->step(0);
    static_cast<void>(b->delta());
    b->model->depart();
    departure = b->intervals.current.start;
    if (b == &first) b->step(8);
    auto parameters = b->state.model.parameters().as<float>();
    for (float& x : parameters) x += 0.1F;  // with rows from peers
    b->state.stamp.step += 1;
    CHECK(b->model->agreed(b->state, true, {}));
  }
  again.model->return_to(departure);
  again.step(8);
  again.model->resume(again.state);
  first.step(16);
  again.step(16);
  CHECK(again.model->own().ahead() == 1);
  CHECK(first.delta() == again.delta());
  CHECK(first.model->kept_digest() == again.model->kept_digest());
}

TEST_CASE("Local steps: as many as the facts can announce, and then it is time to agree") {
  LocalSteps own;
  own.begin(TimePoint());
  std::vector<RowTag> rows(2);
  rows[1].position.partition.partition = 1;
  std::size_t steps = 0;
  for (; !own.full(2); ++steps) own.add({}, rows, 0, TimePoint());
  CHECK(steps > 2000);
  std::vector<RowInterval> intervals(2);
  intervals[0].rows_trained = intervals[1].rows_trained = static_cast<std::uint32_t>(steps);
  intervals[1].partition.partition = 1;
  CHECK(own.rows_of(intervals).size() == 2 * steps);
  CHECK(own.rows_of(intervals).size() <= sync::facts_step_rows_max);
}

TEST_CASE("Local steps: rows that come again find parameters and momentum as the last agreement left them") {
  Bench b;
  b.step(0);
  b.agree();
  const auto kept = b.model->kept_digest();
  CHECK(kept != 0);
  b.step(8);
  const auto moved = b.delta();
  CHECK(b.model->kept_digest() == kept);  // of the synchronization, independent of later steps
  b.model->roll_back(b.state);
  CHECK(b.model->own().rows() == 0);
  CHECK(size_of(b.delta()) == 0);
  b.step(8);
  CHECK(b.delta() == moved);
  // A non-finite sum: its rows are consumed, and its steps undone.
  b.model->agreed(b.state, false, {});
  CHECK(b.model->kept_digest() == kept);
  b.step(8);
  CHECK(b.delta() == moved);
}

TEST_CASE("Local steps: are part of the state that others have reached with them, and of no other") {
  for (const bool prepared : {true, false})
    for (const bool next : {true, false}) {
      CAPTURE(prepared);
      CAPTURE(next);
      Bench b;
      b.step(0);
      b.agree();
      const auto kept = b.model->kept_digest();
      b.step(8);
      if (prepared) static_cast<void>(b.delta());
      const Stamp before = b.state.stamp;
      const std::uint64_t rows = b.state.rows;
      b.state.stamp.step += next ? 1 : 2;
      b.state.rows += 8;
      b.model->adopt(b.state, before, rows, {});
      CHECK(b.model->own().rows() == 0);
      if (prepared && next) {
        CHECK(b.model->kept_digest() != kept);
        CHECK(b.model->kept_digest() != 0);
      } else {
        CHECK(b.model->kept_digest() == 0);
      }
    }
}

TEST_CASE(
    "Local steps: keep their momentum when only offsets have moved elsewhere, and lose no number to "
    "infinity") {
  Bench b;
  b.step(0);
  b.agree();
  const auto kept = b.model->kept_digest();
  const Stamp before = b.state.stamp;
  b.state.stamp.step += 1;
  b.model->adopt(b.state, before, b.state.rows, {});
  CHECK(b.model->kept_digest() == kept);
  // A step with a non-finite result: the next step begins as before it, whatever was sent.
  Bench far;
  far.step(0);
  far.agree();
  const auto kept_far = far.model->kept_digest();
  far.model->invalidate();
  REQUIRE(far.model->compute(far.rows.view(8, 8), 8, far.state));
  REQUIRE(far.model->step(far.state, 8, 1e300));
  static_cast<void>(far.delta());
  far.model->agreed(far.state, true, {});
  CHECK(far.model->kept_digest() == kept_far);
  CHECK(size_of(far.delta()) == 0);
}

TEST_CASE("Local steps: begin again with what was saved of them, beside the state that it was saved with") {
  Bench first;
  first.step(0);
  first.agree();
  Bench second;
  second.state.copy_from(first.state);
  REQUIRE(second.model->begin_with(first.part(), second.state));
  CHECK(second.model->kept_digest() == first.model->kept_digest());
  first.step(8);
  second.step(8);
  CHECK(first.delta() == second.delta());
  Bench without;
  without.state.copy_from(first.state);
  without.step(8);
  CHECK(first.delta() != without.delta());
}

TEST_CASE(
    "Measures: by their names, what nobody knows as 0, and the exchange without the wait for who came last") {
  Bench b;
  Measurements measures(1);
  measures.begin({{"of another build", "", 2},
                  {"local_seconds", ""},
                  {"exchange_seconds", ""},
                  {"sent_bytes", ""},
                  {"record_bytes", ""}});
  CHECK_FALSE(measures.requests_sketches());
  using Numbers = std::vector<float>;
  const auto take = [&](double apart, std::uint64_t sent) {
    return measures.take(
        {.model = *b.model, .record_bytes = 700, .local_seconds = apart, .bytes_sent = sent});
  };
  CHECK(take(1.5, 100) == Numbers{0, 0, 1.5F, 0, 100, 700});
  sync::FactsTable table;
  table.facts.resize(2);
  table.facts[0].measurements = {0, 0, 1.5F, 0, 100, 700};
  table.facts[1].measurements = {0, 0, 2, 0, 100, 700};
  measures.ended(table, 0, 0.75);  // half a second of it is the other one's
  CHECK(take(1, 250) == Numbers{0, 0, 1, 0.25F, 150, 700});
  measures.ended(table, 1, 0.125);
  CHECK(take(1, 250) == Numbers{0, 0, 1, 0.125F, 0, 700});
  measures.begin({{"delta_sketch", "", sync::Sketch::small}});
  CHECK(measures.requests_sketches());
}

TEST_CASE(
    "Measures: steps that have something in common say so, and movements that have diverged say nothing") {
  Bench b;
  b.model->sketch(true);
  Measurements measures(1);
  measures.begin({{"steps_signal", ""}, {"steps_noise", ""}, {"delta_sketch", "", sync::Sketch::small}});
  const auto take = [&] { return measures.take({.model = *b.model}); };
  b.step(0);
  CHECK(take()[1] == 0);  // a single step has no comparison
  b.step(0);
  static_cast<void>(b.delta());
  const auto twice = take();
  CHECK(twice[0] > 0);
  CHECK(twice[1] < 0.1 * twice[0]);  // of the same rows
  double moved = 0;
  for (std::size_t i = 2; i < twice.size(); ++i) moved += double{twice[i]} * twice[i];
  CHECK(moved > 0);
  b.agree();
  CHECK(take() == std::vector<float>(2 + sync::Sketch::small));
  b.step(0);
  auto parameters = b.state.model.parameters().as<float>();
  parameters[0] = std::numeric_limits<float>::infinity();
  static_cast<void>(b.delta());
  for (const float x : take()) CHECK(std::isfinite(x));
}
