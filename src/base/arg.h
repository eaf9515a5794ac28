/* arg.h - the values a spec is written with, before they meet an option table
 *
 *	resize(100, 100, method=nearest)   two numbers, a word named `method`
 *	example(label=int64(default=-1))   a word with arguments of its own
 *	example(tokens=int64[], box=float[4])   words with dimensions
 *	normalize(mean=[0.5, 0.5, 0.5])    a list
 *
 * Values lie in the parsed spec's memory and are immutable. `at` is the offset in
 * the text where the value begins, so that an error can point at it. */
#ifndef LEAT_BASE_ARG_H
#define LEAT_BASE_ARG_H

#include <stdbool.h>
#include <stddef.h>

enum leat_arg_type { LEAT_ARG_NUMBER, LEAT_ARG_STRING, LEAT_ARG_WORD, LEAT_ARG_LIST };

struct leat_arg {
	const char *name; /* NULL: positional */
	size_t name_at;
	enum leat_arg_type type;
	size_t at, len; /* where in the text */

	double number;
	bool integer;     /* number was written without point, exponent or division */
	long long whole;  /* then: its exact value, before the unit is applied */
	const char *unit; /* number: "MiB", "deg", ...; NULL: none */
	const char *text; /* string: its bytes; word: the word */

	/* List: its items. Word: the dimensions in [...], then the arguments in (...). */
	const struct leat_arg *item;
	size_t items;
	bool has_dims; /* word: [...] was written; [] has no dims */
	const struct leat_arg *dim;
	size_t dims;
};

/* One call of a spec: name(args). */
struct leat_call {
	const char *name;
	size_t at, len; /* of the name */
	size_t end;     /* behind the call */
	const struct leat_arg *arg;
	size_t args;
};

#endif
