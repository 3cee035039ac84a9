// Compares metrics of a stream's features with values computed by hand.
#include "core/clock.h"
#include "runtime/ingest/feature_watch.h"
#include "runtime/process/log.h"
#include "runtime/status/metrics/prometheus_sink.h"
#include "runtime/train/live_scores.h"
#include "runtime/train/stream_watch.h"
#include "tests/conformance/metrics_typed.h"
#include "tests/support/decoding.h"

using namespace rivulet;
using namespace rivulet::runtime;
using namespace rivulet::testing;

namespace {

/// Of 1000 rows 10 are faults. The model recognizes 8, and predicts a fault for 8 other rows.
void score_faults(const LiveScores::Parts& parts) {
  LiveScores scores(parts);
  std::vector<float> targets(1000, 0);
  std::vector<float> answers(1000, 0);
  std::fill_n(targets.begin(), 10, 1.0F);
  std::fill_n(answers.begin() + 2, 16, 1.0F);
  scores.computed({.correct = 990, .rows = 1000, .answers = answers}, {{}, targets, 1000, {}}, 1000);
  scores.show();
}

void score_numbers(const LiveScores::Parts& parts) {
  LiveScores scores(parts);
  const std::vector<float> targets{1, 2, 3, 4};  // squared deviations from 2.5: 5
  const std::vector<float> answers{1.5, 2, 1.5, 3};
  scores.computed({.rows = 4, .answers = answers}, {{}, targets, 4, {}}, 4);
  scores.show();
}

}  // namespace

TEST_CASE("Measured: features of a stream that are missing, far out, or move") {
  const auto sink = make_prometheus_sink();
  const auto aside = make_prometheus_sink();  // counts log lines separately
  auto log = make_logger("error", "logfmt", *aside);
  stream::DecodeConfig config{.format = "json", .classes = 2, .features = {"temp", "rms"}, .target = "state"};
  config.normalizes = true;
  config.fill = {stream::Fill::Kind::mean};
  const auto decoder = make_decoder(config);
  FeatureWatch missing(*decoder, *sink, *log.value());
  for (const char* json : {R"({"temp": 1, "state": 0})", R"({"rms": 1, "state": 0})",
                           R"({"temp": 2, "rms": null, "state": 1})"}) {
    std::vector<float> numbers(3);
    decoder->begin(record_of(json));
    CHECK(decoder->next({std::span(numbers).first(2), std::span(numbers).last(1)}).kind ==
          stream::Decoded::Kind::row);
  }
  missing.look(3);
  VirtualClock clock;
  NodeStatus status;
  StreamWatch watch(
      {.clock = clock, .status = status, .metrics = *sink, .log = *log.value(), .features = {"temp", "rms"}});
  const std::vector<std::uint32_t> beyond{3, 0};
  const std::vector<float> features(20, 1.0F);
  // 600 rows with half of them wrong, 600 correct ones, 100 wrong ones.
  for (int batch = 0; batch < 130; ++batch) {
    devices::StepReport report{.correct = batch < 60 ? 5U : batch < 120 ? 10U : 0U, .rows = 10};
    if (batch == 0) report.beyond = beyond;
    watch.computed(report, {features, {}, 10, {}}, 10);
  }
  score_faults({clock, status, *sink, true, {"ok", "fault", "odd"}, 10'000});
  score_numbers({clock, status, *sink, false, {}, 10'000});
  check_sheet(read_sheet(sink->scrape()), read_typed("stream"));
}
