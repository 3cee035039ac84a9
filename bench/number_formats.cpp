// Measures the effect of model.memory_format and model.autocast on a step's CPU time. LeNet-5 and the CNN for
// 3 x 32 x 32, batch of 64, one thread, each format in turns with the default. The effect of autocast on
// accuracy is in docs/RESULTS.md.
//   build/release/bench_number_formats [ROUNDS]
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/measure.h"
#include "bench/model_step.h"

using namespace rivulet;
using namespace rivulet::bench;

namespace {

constexpr std::size_t batch = 64;
constexpr Duration length = std::chrono::milliseconds(500);  ///< of each format per round

struct Format {
  std::string name;
  runtime::Config::Model model;
};

std::vector<Format> formats_of(const std::string& model) {
  runtime::Config::Model usual;
  usual.name = model;
  runtime::Config::Model contiguous = usual;
  contiguous.memory_format = "contiguous";
  runtime::Config::Model bfloat16 = usual;
  bfloat16.autocast = "bfloat16";
  return {{"channels_last", usual}, {"contiguous", contiguous}, {"bfloat16", bfloat16}};
}

void compare(const std::string& model, const RowShape& shape, int rounds) {
  const std::vector<Format> formats = formats_of(model);
  std::vector<std::unique_ptr<ModelStep>> steps;
  for (const Format& format : formats)
    steps.push_back(std::make_unique<ModelStep>(batch, format.model, shape));
  std::vector<std::vector<double>> us(formats.size());
  for (int round = 0; round <= rounds; ++round)
    for (std::size_t i = 0; i < formats.size(); ++i) {
      const double now = steps[i]->us_per_row(length);
      if (round > 0) us[i].push_back(now);  // the first round warms up
    }
  for (std::size_t i = 0; i < formats.size(); ++i) {
    fmt::print("{:8} {:14} {}\n", model, formats[i].name, spread(us[i], "us of CPU per row"));
    if (i > 0) fmt::print("{:8} {:14} {}\n", "", "vs. default", spread(ratios(us[i], us[0]), "x"));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 9;
  devices::prepare_process(1);
  compare("lenet5", {{1, 28, 28}, 1}, rounds);
  compare("cnn", {{3, 32, 32}, 1}, rounds);
  return 0;
}
