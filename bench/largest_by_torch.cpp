#include "bench/largest_by_torch.h"

#include <torch/torch.h>

namespace rivulet::bench {

void largest_by_torch(std::span<const float> numbers, std::size_t k, std::vector<std::uint32_t>& into) {
  const torch::NoGradGuard guard;
  torch::set_num_threads(1);
  const auto all = torch::from_blob(const_cast<float*>(numbers.data()),
                                    {static_cast<std::int64_t>(numbers.size())}, torch::kFloat32);
  const auto found = std::get<1>(torch::topk(all.abs(), static_cast<std::int64_t>(k), 0, true, false));
  const auto* at = found.data_ptr<std::int64_t>();
  into.assign(at, at + k);
}

}  // namespace rivulet::bench
