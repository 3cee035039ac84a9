#pragma once
#include "tests/fuzz/target.h"

/// Forges facts.
namespace rivulet::fuzz {

/// Magic, version and checksum as in this build, for any other contents of `head`. 256 bytes.
void seal_facts(std::span<std::byte> head);

}  // namespace rivulet::fuzz
