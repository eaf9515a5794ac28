/* spec.h - parse the text of a pipeline into calls with arguments
 *
 *	spec  = call { '|' call }
 *	call  = word [ '(' [ arg { ',' arg } [ ',' ] ] ')' ]
 *	arg   = [ word '=' ] value
 *	value = number [ unit ] | string | word [ '[' dims ']' ] [ '(' args ')' ] | '[' values ']'
 *	number = [ '-' | '+' ] digits with point and exponent, or number '/' number
 *	string = '...' or "..." with \\ \' \" \n \t \xHH
 *	word  = letter or '_', then letters, digits, '_', '.', '-'
 *
 * The text is UTF-8; write other bytes as \xHH. White space and newlines are allowed between tokens; '#' starts a
 *comment that ends with the line. The parser knows no ops: the pipeline checks names and options against the tables. */
#ifndef LEAT_FEED_SPEC_H
#define LEAT_FEED_SPEC_H

#include "base/arg.h"
#include "base/err.h"

struct leat_mem;

struct leat_spec {
	const char *text; /* a copy, for error messages */
	const struct leat_call *call;
	size_t calls;
	struct leat_mem *mem;
	void *blocks; /* all memory of this spec; freed at once */
};

enum leat_status leat_spec_parse(struct leat_spec *spec, const char *text, struct leat_mem *mem, struct leat_err *err);
void leat_spec_free(struct leat_spec *spec); /* a zeroed spec is allowed */

#endif
