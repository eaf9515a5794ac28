/* arg.h - the values a spec is written with, before they meet an option table, and their parser
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

#include "base/err.h"

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

enum { LEAT_MAX_SPEC = 64 * 1024, LEAT_MAX_NESTING = 16 }; /* bytes of text; lists and arguments in one another */

/* Reads calls and values from a text one after the other, by the grammar of feed/spec.h. What it
 * gives lies in `blocks`; the text is borrowed for the time of reading. One thread. */
struct leat_parse {
	const char *text;
	size_t pos; /* of the next token: behind white space and comments */
	size_t end; /* behind the last token */
	int depth;
	void *blocks; /* all memory, freed together */
	struct leat_mem *mem;
	struct leat_err *err;
};

/* Checks the text as a whole (length, UTF-8, control characters) and goes to the first token. Whatever
 * happens, `blocks` is the caller's to free. */
enum leat_status leat_parse_begin(struct leat_parse *parse, const char *text, struct leat_mem *mem,
                                  struct leat_err *err);
void leat_parse_free(struct leat_mem *mem, void *blocks); /* takes NULL */

enum leat_status leat_parse_call(struct leat_parse *parse, struct leat_call *call);
enum leat_status leat_parse_value(struct leat_parse *parse, struct leat_arg *value);
bool leat_parse_accept(struct leat_parse *parse, char token); /* goes past it when it is next */
bool leat_parse_at_end(const struct leat_parse *parse);
/* An error at the next token: "expected WHAT". */
enum leat_status leat_parse_expected(struct leat_parse *parse, const char *what);
/* A copy in the blocks, NUL-terminated. */
enum leat_status leat_parse_keep(struct leat_parse *parse, const char *bytes, size_t len, const char **copy);
/* Room for one more item: `array` of `count` items moves when it is full. */
enum leat_status leat_parse_grow(struct leat_parse *parse, void **array, size_t *cap, size_t count, size_t size);

#endif
