/* cpu.h - what this processor can do; private to src/image
 *
 * A kernel is written once, as a function that is always inlined, in plain C or with vectors. Two functions call it,
 * one of them compiled for AVX2; both give the same bytes, since nothing here may fuse or reorder sums. */
#ifndef LEAT_IMAGE_CPU_H
#define LEAT_IMAGE_CPU_H

#include <stdbool.h>

#define LEAT_KERNEL static inline __attribute__((always_inline))

#if defined(__x86_64__)
#define LEAT_HAS_AVX2 1
#define LEAT_AVX2 __attribute__((target("avx2")))
static inline bool
leat_cpu_avx2(void)
{
	return __builtin_cpu_supports("avx2");
}
#else
#define LEAT_AVX2
static inline bool
leat_cpu_avx2(void)
{
	return false;
}
#endif

#endif
