/* spec.h - the text of a pipeline becomes calls with arguments
 *
 *	spec  = call { '|' call }
 *	call  = word [ '(' [ arg { ',' arg } [ ',' ] ] ')' ]
 *	arg   = [ word '=' ] value
 *	value = number [ unit ] | string | word [ '[' dims ']' ] [ '(' args ')' ] | '[' values ']'
 *	number = [ '-' | '+' ] digits with point and exponent, or number '/' number
 *	string = '...' or "..." with \\ \' \" \n \t \xHH
 *	word  = letter or '_', then letters, digits, '_', '.', '-'
 * The text is UTF-8; bytes that are not are written \xHH. White space and newlines stand anywhere between; '#' begins a
 *comment to the end of the line. The parser knows no op: names and options are checked against the tables by the
 *pipeline. */
#ifndef LEAT_FEED_SPEC_H
#define LEAT_FEED_SPEC_H

#include "base/arg.h"
#include "base/err.h"

struct leat_mem;

struct leat_spec {
	const char *text; /* a copy, for messages */
	const struct leat_call *call;
	size_t calls;
	struct leat_mem *mem;
	void *blocks; /* all memory of this spec, freed together */
};

enum leat_status leat_spec_parse(struct leat_spec *spec, const char *text, struct leat_mem *mem, struct leat_err *err);
void leat_spec_free(struct leat_spec *spec); /* takes a zeroed spec */

#endif
