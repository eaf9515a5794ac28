/* burn.h - a step that computes, to see whether the loader takes its CPUs */
#ifndef LEAT_XRAY_BURN_H
#define LEAT_XRAY_BURN_H

#include <stdint.h>

#include "base/mem.h"

struct leat_burn {
	unsigned threads;
	uint64_t work; /* rounds per thread */
	struct leat_mem *mem;
};

/* Sets `work` so that a step takes this long on an idle machine. */
void leat_burn_calibrate(struct leat_burn *burn, double ms);
/* One step; returns how long it took, in ms. */
double leat_burn(struct leat_burn *burn);

#endif
