// Every metric in the list is compared with an expected value somewhere.
#include <cmath>

#include "tests/conformance/metrics_typed.h"

using namespace rivulet::testing;

namespace {

constexpr const char* all_metrics[] = {
#define RIVULET_METRIC(kind, name, help) #name,
#include "core/metrics.def"
#undef RIVULET_METRIC
};

constexpr const char* sheets[] = {"device", "jetson", "desktop", "statistics", "complaints",
                                  "reader", "fast",   "slow",    "recall",     "stream"};

}  // namespace

TEST_CASE("Measured: each metric of the list is in a typed sheet") {
  std::set<std::string> typed;
  for (const char* sheet : sheets) typed.merge(names_in(read_typed(sheet)));
  for (const char* name : all_metrics) {
    CAPTURE(name);
    CHECK(typed.erase(name) == 1);
  }
  for (const std::string& name : typed) FAIL_CHECK(name, " is typed, but is not a metric");
}

TEST_CASE("Measured: a sheet finds what is missing, what is not typed, and another value") {
  const MetricSheet sheet = read_sheet(
      "# HELP rivulet_a A.\nrivulet_a 1\nrivulet_b{x=\"y\"} 2.5\nrivulet_c_bucket{le=\"1\"} 7\n"
      "rivulet_c_sum 3\nrivulet_c_count 2\nprocess_threads 4\nrivulet_n NaN\n");
  CHECK(sheet.size() == 5);
  const TypedSheet right{.values = {{"a", 1}, {"b{x=\"y\"}", 2.5}, {"c_sum", 3}, {"n", std::nan("")}},
                         .between = {{"c_count", {1, 2}}}};
  CHECK(differences(sheet, right).empty());
  CHECK(names_in(right) == std::set<std::string>{"a", "b", "c", "n"});
  TypedSheet wrong = right;
  wrong.values[0].second = 1.000001;
  wrong.values[1].first = "b{x=\"z\"}";
  wrong.values[3].second = 0;
  wrong.between[0].second = {2.5, 3};
  CHECK(differences(sheet, wrong) ==
        std::vector<std::string>{"a is 1, typed 1.000001", "b{x=\"z\"} is missing, typed 2.5",
                                 "n is nan, typed 0", "c_count is 2, typed 2.5 to 3",
                                 "b{x=\"y\"} is 2.5, not typed"});
}
