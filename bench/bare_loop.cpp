#include "bench/bare_loop.h"

#include <torch/torch.h>

#include <vector>

#include "core/clock.h"

namespace rivulet::bench {
namespace {

torch::nn::Sequential lenet5() {
  namespace nn = torch::nn;
  return nn::Sequential(nn::Conv2d(nn::Conv2dOptions(1, 6, 5).padding(2)), nn::MaxPool2d(2), nn::ReLU(),
                        nn::Conv2d(nn::Conv2dOptions(6, 16, 5)), nn::MaxPool2d(2), nn::ReLU(), nn::Flatten(),
                        nn::Linear(400, 120), nn::ReLU(), nn::Linear(120, 84), nn::ReLU(),
                        nn::Linear(84, 10));
}

torch::Tensor tensor_of(std::span<const float> numbers) {
  return torch::tensor(std::vector<float>(numbers.begin(), numbers.end()));
}

}  // namespace

struct BareLoop::State {
  torch::Tensor pixels;
  torch::Tensor labels;
  std::int64_t batch;
  torch::nn::Sequential network = lenet5();
  std::unique_ptr<torch::optim::SGD> optimizer = {};
  std::int64_t next = 0;

  void run() {
    const std::int64_t begin = next;
    next = (begin + batch) % pixels.size(0);
    optimizer->zero_grad();
    auto loss = torch::cross_entropy_loss(network->forward(pixels.slice(0, begin, begin + batch)),
                                          labels.slice(0, begin, begin + batch));
    loss.backward();
    optimizer->step();
  }
};

BareLoop::BareLoop(std::span<const float> features, std::span<const float> targets, std::size_t batch)
    : state_(new State{tensor_of(features).view({-1, 28, 28, 1}).permute({0, 3, 1, 2}),
                       tensor_of(targets).to(torch::kLong), static_cast<std::int64_t>(batch)}) {
  for (auto& parameter : state_->network->parameters())
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(torch::MemoryFormat::ChannelsLast));
  state_->optimizer = std::make_unique<torch::optim::SGD>(state_->network->parameters(),
                                                          torch::optim::SGDOptions(0.05).momentum(0.9));
}

BareLoop::~BareLoop() = default;

double BareLoop::us_per_row(Duration length) {
  const RealClock clock;
  const TimePoint end = clock.now() + length;
  const double began = thread_cpu_seconds();
  std::int64_t steps = 0;
  for (; clock.now() < end; ++steps) state_->run();
  return (thread_cpu_seconds() - began) * 1e6 / static_cast<double>(steps * state_->batch);
}

}  // namespace rivulet::bench
