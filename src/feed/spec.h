/* spec.h - the text of a pipeline becomes calls with arguments
 *
 *	spec  = call { '|' call }
 *	call  = word [ '(' [ arg { ',' arg } [ ',' ] ] ')' ]
 *	arg   = [ word '=' ] value
 *	value = number [ unit ] | string | word [ '[' dims ']' ] [ '(' args ')' ] | '[' values ']'
 *	number = [ '-' | '+' ] digits with point and exponent, or number '/' number
 *	string = '...' or "..." with \\ \' \" \n \t \xHH
 *	word  = letter or '_', then letters, digits, '_', '.', '-'
 * White space and newlines stand anywhere between; '#' begins a comment to the end of the line.
 * The parser knows no op: names and options are checked against the tables by the pipeline. */
#ifndef LEAT_FEED_SPEC_H
#define LEAT_FEED_SPEC_H

#include "base/arg.h"
#include "base/err.h"
#include "base/mem.h"

struct leat_spec {
	const char *text; /* a copy */
	const struct leat_call *call;
	size_t calls;
	struct leat_mem *mem;
	void *blocks; /* all memory of this spec, freed together */
};

enum { LEAT_MAX_SPEC = 64 * 1024, LEAT_MAX_NESTING = 16 };

enum leat_status leat_spec_parse(struct leat_spec *spec, const char *text, struct leat_mem *mem, struct leat_err *err);
void leat_spec_free(struct leat_spec *spec); /* takes a zeroed spec */

#endif
