/* arg.h - parser for the calls and values in a spec, before they are matched with an option table
 *
 *	resize(100, 100, method=nearest)   two numbers, a word named `method`
 *	example(label=int64(default=-1))   a word with arguments
 *	example(tokens=int64[], box=float[4])   words with dimensions
 *	normalize(mean=[0.5, 0.5, 0.5])    a list
 *
 * Values are immutable and live in the parsed spec's memory. `at` is the value's offset in
 * the text, so an error can point at it. */
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
	size_t at, len; /* position in the text */

	double number;
	bool integer;     /* number has no decimal point, exponent or division */
	long long whole;  /* integer: exact value, before the unit is applied */
	const char *unit; /* number: "MiB", "deg", ...; NULL: none */
	const char *text; /* string: its bytes; word: the word */

	/* List: its items. Word: the dimensions in [...], then the arguments in (...). */
	const struct leat_arg *item;
	size_t items;
	bool has_dims; /* word: followed by [...], which may be empty */
	const struct leat_arg *dim;
	size_t dims;
};

/* One call of a spec: name(args). */
struct leat_call {
	const char *name;
	size_t at, len; /* of the name */
	size_t end;     /* first byte after the call */
	const struct leat_arg *arg;
	size_t args;
};

enum { LEAT_MAX_SPEC = 64 * 1024, LEAT_MAX_NESTING = 16 }; /* bytes; levels of brackets */

/* Parser state; feed/spec.h has the grammar. Results are allocated in `blocks`. The text must
 * stay valid while parsing. One thread. */
struct leat_parse {
	const char *text;
	size_t pos; /* of the next token, past white space and comments */
	size_t end; /* of the last token */
	int depth;
	const char *calls; /* what calls name, for errors; NULL: "a source or op" */
	void *blocks;      /* holds all results; see leat_parse_free */
	struct leat_mem *mem;
	struct leat_err *err;
};

/* Validates the whole text (length, UTF-8, control characters) and moves to the first token. The caller frees
 * `blocks`, on failure too. */
enum leat_status leat_parse_begin(struct leat_parse *parse, const char *text, struct leat_mem *mem,
                                  struct leat_err *err);
void leat_parse_free(struct leat_mem *mem, void *blocks); /* accepts NULL */

enum leat_status leat_parse_call(struct leat_parse *parse, struct leat_call *call);
enum leat_status leat_parse_value(struct leat_parse *parse, struct leat_arg *value);
bool leat_parse_accept(struct leat_parse *parse, char token); /* consumes it if it is next */
bool leat_parse_at_end(const struct leat_parse *parse);
/* Fails at the next token: "expected WHAT, not ...". */
enum leat_status leat_parse_expected(struct leat_parse *parse, const char *what);
/* Makes a NUL-terminated copy in `blocks`. */
enum leat_status leat_parse_keep(struct leat_parse *parse, const char *bytes, size_t len, const char **copy);
/* Makes room for one more item, moving `array` if its `count` items fill it. */
enum leat_status leat_parse_grow(struct leat_parse *parse, void **array, size_t *cap, size_t count, size_t size);

#endif
