/* slices.h - the values that one step is run for
 *
 *	slices: {subject: 1..18, bin: [early, late]}
 *
 * Each variable has its values; slices are their product, the last variable changing fastest. A variable's values are
 *
 *	1..18, 0..100..10       a range
 *	[early, late]           a list
 *	{glob: raw/s-*.csv}     paths of files, each of which is an input of its slice alone
 *	{lines: names.txt}      the lines of a file
 *	{rows: people.csv}      the rows of a table: one variable for each column, which change together
 *
 * Nothing is stored for a slice, so a step may have a million. */
#ifndef LEAT_STEP_SLICES_H
#define LEAT_STEP_SLICES_H

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

enum { LEAT_MAX_VARIABLES = 64, LEAT_MAX_SLICES = 10000000 };

struct leat_variable {
	const char *name;
	const char **value; /* of the variables of one `rows` all have the same count */
	size_t values;
	size_t axis;  /* variables of one axis change together */
	bool is_file; /* the value is a path, relative to the project: an input */
};

struct leat_slices {
	struct leat_variable *variable;
	size_t variables;
	size_t *length; /* of each axis */
	size_t axes;
	size_t count; /* the product; 1 without variables */
};

const char *leat_slice_value(const struct leat_slices *slices, size_t slice, size_t variable);
size_t leat_slice_variable(const struct leat_slices *slices, const char *name); /* SIZE_MAX: none */
/* "subject=3,bin=7"; in values, ',' '=' '%' and control characters are %HH. "" without variables. */
void leat_slice_text(const struct leat_slices *slices, size_t slice, struct leat_str *out);
/* The name of a slice's entry in a folder: "3,7", of those variables whose `use` is true; '/' is %2F. */
void leat_slice_entry(const struct leat_slices *slices, size_t slice, const bool *use, struct leat_str *out);
/* Finds a slice by its text, with the variables in any order; 7 finds 07 if there is no 7. LEAT_INVALID names what does not exist. */
enum leat_status leat_slice_find(const struct leat_slices *slices, const char *text, size_t *slice,
                                 struct leat_err *err);

#endif
