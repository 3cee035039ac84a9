#pragma once
#include "tests/fuzz/target.h"

/// Forging facts.
namespace rivulet::fuzz {

/// Magic, version and checksum as this build writes them, over whatever else `head` says. 256 bytes.
void seal_facts(std::span<std::byte> head);

}  // namespace rivulet::fuzz
