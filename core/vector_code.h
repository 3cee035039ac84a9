#pragma once

/// In front of a loop over all parameters: the program holds it for the vector units of newer processors too
/// and takes the widest that this one has. Same bits on each: products and sums are rounded one by one (no
/// fused multiply-add), in the order that is written. Not in instrumented builds: the choice is made before
/// the sanitizers are up. Such a loop goes over plain pointers: the checks of a span would keep it from being
/// vectorized.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define RIVULET_VECTOR_CODE __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define RIVULET_VECTOR_CODE
#endif
