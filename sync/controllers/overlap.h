#pragma once
#include "sync/policy/controller.h"

namespace rivulet::sync::policy {

/// Key of all controllers of `when` that allow local steps: a delay of one synchronization (Zhu et al.,
/// 2021). Single local steps leave nothing to overlap with.
constexpr Key overlap_key{
    .name = "sync.overlap",
    .type = KeyType::text,
    .text = "\"auto\"",
    .help =
        "whether local steps continue during a synchronization; the next one includes their deltas; auto: if "
        "worthwhile, only with policy auto; always: also with policy periodic",
    .choices = "auto | always | never"};
constexpr std::string_view overlap_always = "always";
constexpr std::string_view overlap_never = "never";

}  // namespace rivulet::sync::policy
