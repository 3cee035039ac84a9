// A decision log shared by two workers without a lock: the race is inside Worker::step of two train threads.
#include <string_view>

#include "tests/canary/planted_race.h"

using namespace rivulet;

namespace {

class SharedDecisions final : public runtime::DecisionLog {
 public:
  explicit SharedDecisions(long& count) : count_(count) {}
  void write(std::uint64_t, std::uint64_t, const sync::FactsTable&, const sync::policy::RoundPlan&) override {
    testing::count_without_lock(count_);
  }

 private:
  long& count_;
};

}  // namespace

int main(int argc, char** argv) {
  long count = 0;
  testing::ThreadedParts parts;
  parts.decisions = [&count](std::size_t) { return std::make_unique<SharedDecisions>(count); };
  return testing::run_planted(std::move(parts), argc > 1 && std::string_view(argv[1]) == "gloo");
}
