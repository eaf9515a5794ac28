/* cpu.h - CPU features, detected at run time; private to src/image
 *
 * A kernel has a plain version in C, which runs everywhere and defines the result. It may also have an AVX2 version
 *that returns the same bytes, in a function marked LEAT_AVX2 between #if LEAT_X86 and #endif:
 *
 *	if (leat_cpu_has_avx2())
 *		sum_avx2(...);
 *	else
 *		leat_sum_plain(...);
 *
 * The plain version is not static, so that a test can compare the two (plain.h). */
#ifndef LEAT_IMAGE_CPU_H
#define LEAT_IMAGE_CPU_H

#include <stdbool.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define LEAT_X86 1
#include <immintrin.h>
/* Without FMA: products have to be rounded before they are added, on every machine. */
#define LEAT_AVX2 __attribute__((target("avx2")))
/* For helpers of such a function. */
#define LEAT_AVX2_INLINE __attribute__((target("avx2"), always_inline)) static inline
#else
#define LEAT_X86 0
#endif

/* Cheap: one load and a test. */
static inline bool
leat_cpu_has_avx2(void)
{
#if LEAT_X86
	return __builtin_cpu_supports("avx2") != 0;
#else
	return false;
#endif
}

#endif
