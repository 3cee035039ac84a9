#pragma once
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {

/// Of all controllers of when that let devices step on their own: a delay of one agreement (Zhu et al.,
/// 2021). With single own steps there is nothing to overlap with.
constexpr Key overlap_key{.name = "sync.overlap",
                          .type = KeyType::boolean,
                          .text = "false",
                          .help =
                              "of policies periodic and auto: own steps go on while the group agrees on "
                              "those before; what it agreed on counts one agreement later"};

}  // namespace rivulet::sync::policy
