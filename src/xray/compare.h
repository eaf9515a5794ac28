/* compare.h - two runs side by side, and whether they differ
 *
 * Two equal runs never give the same figures, so a difference counts only if it is larger than what the runs vary by
 * themselves. The spread of a run's rate is estimated
 *
 *  - from its epochs, without the first (which warms caches), if both runs have at least four: the rates compared are
 *    then those of these epochs;
 *  - else from the times of its batches. Neighbouring batches resemble each other (they are made ahead, in bursts), so
 *    they count as a quarter of their number. At least 20 are needed;
 *  - else it is not known, and taken as 20 %.
 *
 * The noise is the half width of the 99 % confidence interval of the ratio of both rates (Welch's t). A ratio beyond
 * the noise, and beyond 5 %, is a difference. Within both it is none if the noise is at most 5 %; otherwise the runs
 * are too short to tell. 5 % is half-way between equal runs and those that differ by 10 %: processes vary by a few
 * percent for reasons that no single run shows, such as where its pages happen to be. */
#ifndef LEAT_XRAY_COMPARE_H
#define LEAT_XRAY_COMPARE_H

#include <jansson.h>

#include "base/err.h"

enum leat_verdict { LEAT_VERDICT_SAME, LEAT_VERDICT_DIFFERENT, LEAT_VERDICT_UNCLEAR };

enum { LEAT_COMPARE_ROWS = 12, LEAT_COMPARE_SETTINGS = 32 };

struct leat_compare_row {
	const char *name, *unit; /* unit "share": 0..1 */
	double a, b;             /* NAN: not known */
	bool more_is_better;
	bool decided, differs; /* decided: the spread is known well enough to say whether it differs */
};

struct leat_comparison {
	enum leat_verdict verdict;
	double change, noise; /* of the rate: B / A - 1, and its noise */
	const char *basis;    /* what the noise comes from */
	struct leat_compare_row row[LEAT_COMPARE_ROWS];
	size_t rows;
	char sentence[400];
};

enum leat_status leat_compare(const json_t *a, const json_t *b, struct leat_comparison *comparison,
                              struct leat_err *err);
/* As an object for the page, with both runs' settings that differ. NULL: out of memory. */
json_t *leat_comparison_json(const struct leat_comparison *comparison, const json_t *a, const json_t *b);

#endif
