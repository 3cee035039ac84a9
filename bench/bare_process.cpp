// Only trains LeNet-5 with LibTorch on rows in memory. bench/pages subtracts its memory from that of a
// device.
//   build/release/bench_bare_process [SECONDS]     trains, prints "trained", waits until its input ends
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/bare_loop.h"

int main(int argc, char** argv) {
  constexpr std::size_t batch = 64;
  constexpr std::size_t rows = 10 * batch;
  constexpr std::size_t pixels = 28 * 28;
  const double seconds = argc > 1 ? std::atof(argv[1]) : 10;
  std::vector<float> features(rows * pixels);
  std::vector<float> targets(rows);
  for (std::size_t i = 0; i < features.size(); ++i) features[i] = static_cast<float>(i % 97) / 97;
  for (std::size_t i = 0; i < rows; ++i) targets[i] = static_cast<float>(i % 10);
  rivulet::bench::BareLoop loop(features, targets, batch);
  const double us = loop.us_per_row(rivulet::from_seconds(seconds));
  std::printf("trained %.1f\n", us);
  std::fflush(stdout);
  while (std::getchar() != EOF) continue;
  return 0;
}
