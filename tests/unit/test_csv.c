/* test_csv.c - rows of comma-separated values */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/csv.h"

/* All rows as text: cells in <>, rows ended by ;, an error in {}. The buffer is exactly as large as promised. */
static void
rows_are(const char *text, size_t len, const char *expected)
{
	char *copy = malloc(len + 1), got[4096] = "";
	size_t used = 0;
	struct leat_csv_row row;
	struct leat_csv csv;
	struct leat_err err;
	enum leat_status status;

	assert_non_null(copy);
	memcpy(copy, text, len);
	leat_err_clear(&err);
	leat_csv_begin(&csv, copy, len);
	while ((status = leat_csv_next(&csv, &row, &err)) == LEAT_OK) {
		used += (size_t)snprintf(got + used, sizeof(got) - used, "%llu:", (unsigned long long)row.line);
		for (size_t i = 0; i < row.cells; i++)
			used += (size_t)snprintf(got + used, sizeof(got) - used, "<%s>", row.cell[i]);
		used += (size_t)snprintf(got + used, sizeof(got) - used, ";");
	}
	if (status != LEAT_END)
		snprintf(got + used, sizeof(got) - used, "{%s}", err.text);
	assert_string_equal(got, expected);
	free(copy);
}

#define ROWS(text, expected) rows_are(text, sizeof(text) - 1, expected)

static void
rows_end_in_lf_or_crlf_or_the_end(void **state)
{
	(void)state;
	ROWS("", "");
	ROWS("a", "1:<a>;");
	ROWS("a,b\n", "1:<a><b>;");
	ROWS("a,b\r\nc,d", "1:<a><b>;2:<c><d>;");
	ROWS("a\r", "1:<a>;");
	ROWS("a\rb\n", "1:<a\rb>;");
	ROWS("\xef\xbb\xbf"
	     "a\n",
	     "1:<a>;");
	ROWS("\xef\xbb\xbf", "");
}

static void
empty_cells_are_cells_and_empty_lines_are_no_rows(void **state)
{
	(void)state;
	ROWS(",", "1:<><>;");
	ROWS("a,,\n\n\r\n,b", "1:<a><><>;4:<><b>;");
	ROWS("\n\n", "");
	ROWS("\"\"\n", "1:<>;");
}

static void
quoted_cells_hold_anything(void **state)
{
	(void)state;
	ROWS("\"a,b\",\"c\"\n", "1:<a,b><c>;");
	ROWS("\"say \"\"hi\"\"\"", "1:<say \"hi\">;");
	ROWS("\"one\ntwo\r\nthree\",x\ny", "1:<one\ntwo\r\nthree><x>;4:<y>;");
	ROWS("a\"b,c", "1:<a\"b><c>;"); /* a quote inside is no quote */
	ROWS("\"a\"\r\n", "1:<a>;");
}

static void
damage_is_told_with_its_line(void **state)
{
	(void)state;
	ROWS("a\n\"b", "1:<a>;{line 2: a quoted cell is not closed}");
	ROWS("a\n\"b\"c\n", "1:<a>;{line 2: text follows a closing quote}");
	ROWS("a\nb\0c", "1:<a>;{line 2: it has a NUL byte}");
	ROWS("\"", "{line 1: a quoted cell is not closed}");
}

static void
the_number_of_cells_is_limited(void **state)
{
	char text[LEAT_CSV_CELLS + 2], *copy = text;
	struct leat_csv_row row;
	struct leat_csv csv;
	struct leat_err err;

	(void)state;
	leat_err_clear(&err);
	memset(text, ',', sizeof(text));
	leat_csv_begin(&csv, copy, LEAT_CSV_CELLS - 1);
	assert_int_equal(leat_csv_next(&csv, &row, &err), LEAT_OK);
	assert_int_equal(row.cells, LEAT_CSV_CELLS);
	memset(text, ',', sizeof(text));
	leat_csv_begin(&csv, copy, LEAT_CSV_CELLS);
	assert_int_equal(leat_csv_next(&csv, &row, &err), LEAT_DATA);
	assert_string_equal(err.text, "line 1: it has more than 2048 cells");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_end_in_lf_or_crlf_or_the_end),
		cmocka_unit_test(empty_cells_are_cells_and_empty_lines_are_no_rows),
		cmocka_unit_test(quoted_cells_hold_anything),
		cmocka_unit_test(damage_is_told_with_its_line),
		cmocka_unit_test(the_number_of_cells_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
