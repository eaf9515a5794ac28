/* cpu.h - which instructions this processor has, asked at run time; private to src/image
 *
 * A kernel has a plain form in C that runs everywhere and tells what the result is, and may have one for AVX2, in a
 * function marked LEAT_AVX2 between #if LEAT_X86 and #endif, that gives the same bytes:
 *
 *	if (leat_cpu_has_avx2())
 *		sum_avx2(...);
 *	else
 *		leat_sum_plain(...);
 *
 * The plain form is not static, so that a test can hold the two against each other. */
#ifndef LEAT_IMAGE_CPU_H
#define LEAT_IMAGE_CPU_H

#include <stdbool.h>

#if defined(__x86_64__) && defined(__GNUC__)
#define LEAT_X86 1
#include <immintrin.h>
/* Not with FMA, on purpose: a product is rounded before it is added, on every machine. */
#define LEAT_AVX2 __attribute__((target("avx2")))
/* For the pieces of such a function. */
#define LEAT_AVX2_INLINE __attribute__((target("avx2"), always_inline)) static inline
#else
#define LEAT_X86 0
#endif

/* Costs a load and a test. */
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
