#pragma once
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {

/// Of all controllers of when that let devices step on their own: a delay of one agreement (Zhu et al.,
/// 2021). With single own steps there is nothing to overlap with.
constexpr Key overlap_key{.name = "sync.overlap",
                          .type = KeyType::text,
                          .text = "\"auto\"",
                          .help =
                              "whether own steps go on while the group agrees on those before, which count "
                              "one agreement later; auto: where policy auto finds that it is worth it; "
                              "always: with policy periodic, too",
                          .choices = "auto | always | never"};
constexpr std::string_view overlap_always = "always";
constexpr std::string_view overlap_never = "never";

}  // namespace rivulet::sync::policy
