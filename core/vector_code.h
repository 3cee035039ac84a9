#pragma once

/// Precedes a loop over all parameters. The program contains versions for newer vector units and uses the
/// widest one that the CPU supports. The results are bit-identical: products and sums are rounded separately
/// (no fused multiply-add), in source order. Disabled in instrumented builds: the version is selected before
/// the sanitizers are initialized. Such loops use plain pointers, since bounds checks of a span would prevent
/// vectorization.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define RIVULET_VECTOR_CODE __attribute__((target_clones("default", "avx2", "avx512f")))
#else
#define RIVULET_VECTOR_CODE
#endif
