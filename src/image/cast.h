/* cast.h - what the files of the cast kernel share; private to src/image */
#ifndef LEAT_IMAGE_CAST_H
#define LEAT_IMAGE_CAST_H

#include "format/sample.h"

/* Casts as many elements as fit whole vectors, from the first one on, and returns how many. Only where AVX2 is. */
size_t leat_cast_avx2(const void *in, enum leat_dtype from, void *out, enum leat_dtype to, size_t count);

#endif
