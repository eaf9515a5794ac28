/* stats.c - what is true of a whole image
 *
 * Sums are kept in double, in LANES lanes: element i is added to lane i % LANES, and a channel's lanes
 * are added up in ascending order. LANES is a multiple of every number of channels, so that lanes hold
 * one channel each, and the loop is vector code that gives the same bytes on every machine. */
#include "image/affine.h"
#include "image/image.h"

enum { LANES = 12 };

#define ADD_UP(type)                                                                                                   \
	do {                                                                                                           \
		const type *x = image->data;                                                                           \
		size_t i = 0;                                                                                          \
                                                                                                                       \
		for (; i + LANES <= count; i += LANES)                                                                 \
			for (size_t lane = 0; lane < LANES; lane++)                                                    \
				sum[lane] += (double)x[i + lane];                                                      \
		for (; i < count; i++)                                                                                 \
			sum[i % LANES] += (double)x[i];                                                                \
	} while (0)

void
leat_channel_means(const struct leat_datum *image, float *mean)
{
	size_t count = (size_t)leat_datum_elements(image), channels = (size_t)image->shape[2];
	double sum[LANES] = {0};

	if (image->dtype == LEAT_U8)
		ADD_UP(uint8_t);
	else
		ADD_UP(float);
	for (size_t c = 0; c < channels; c++) {
		double total = 0;

		for (size_t lane = c; lane < LANES; lane += channels)
			total += sum[lane];
		mean[c] = (float)(total / (double)(count / channels));
	}
}
