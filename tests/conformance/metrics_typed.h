#pragma once
#include <doctest/doctest.h>

#include "tests/support/metric_sheet.h"

namespace rivulet::testing {

inline void check_sheet(const MetricSheet& sheet, const TypedSheet& typed) {
  CHECK(!sheet.empty());
  for (const std::string& difference : differences(sheet, typed)) FAIL_CHECK(difference);
}

}  // namespace rivulet::testing
