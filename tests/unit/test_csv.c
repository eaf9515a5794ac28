/* test_csv.c - rows of comma-separated values */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "format/csv.h"

enum { SHOWN = 4096 };

static void
show_row(const struct leat_csv_row *row, char got[SHOWN])
{
	size_t used = strlen(got);

	used += (size_t)snprintf(got + used, SHOWN - used, "%llu:", (unsigned long long)row->line);
	for (size_t i = 0; i < row->cells; i++)
		used += (size_t)snprintf(got + used, SHOWN - used, "<%s>", row->cell[i]);
	snprintf(got + used, SHOWN - used, ";");
}

static void
show_end(enum leat_status status, const struct leat_err *err, char got[SHOWN])
{
	size_t used = strlen(got);

	if (status != LEAT_END)
		snprintf(got + used, SHOWN - used, "{%s}", err->text);
}

/* All rows as text: cells in <>, rows ended by ;, an error in {}. The buffer is exactly as large as promised. */
static void
show_whole(const char *text, size_t len, char got[SHOWN])
{
	char *copy = malloc(len + 1);
	struct leat_csv_row row;
	struct leat_csv csv;
	struct leat_err err;
	enum leat_status status;

	assert_non_null(copy);
	memcpy(copy, text, len);
	leat_err_clear(&err);
	got[0] = '\0';
	leat_csv_begin(&csv, copy, len);
	while ((status = leat_csv_next(&csv, &row, &err)) == LEAT_OK)
		show_row(&row, got);
	show_end(status, &err, got);
	free(copy);
}

/* The same, read in pieces. */
static void
show_pieces(const char *text, size_t len, size_t piece, char got[SHOWN])
{
	const struct leat_csv_input input = leat_csv_text_input(text, len);
	struct leat_csv_stream stream;
	enum leat_status status;
	struct leat_csv_row row;
	struct leat_mem mem;
	struct leat_err err;

	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	got[0] = '\0';
	leat_csv_stream_init(&stream, &input, &mem);
	stream.least = piece;
	while ((status = leat_csv_stream_next(&stream, &row, &err)) == LEAT_OK || status == LEAT_AGAIN) {
		if (status == LEAT_AGAIN)
			assert_int_equal(leat_csv_stream_fill(&stream, &err), LEAT_OK);
		else
			show_row(&row, got);
	}
	show_end(status, &err, got);
	leat_csv_stream_free(&stream);
	assert_int_equal(mem.used, 0);
}

static void
rows_are(const char *text, size_t len, const char *expected)
{
	char got[SHOWN];

	show_whole(text, len, got);
	assert_string_equal(got, expected);
	for (size_t piece = 8; piece < 400; piece = piece * 3 / 2) {
		show_pieces(text, len, piece, got);
		assert_string_equal(got, expected);
	}
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

/* Any text gives the same rows and the same error, however it is cut into pieces. */
static void
pieces_give_the_same_rows(void **state)
{
	static const char letters[] = "ab\"\"\",,\n\n\r\n\r";
	char text[300], whole[SHOWN], pieces[SHOWN];
	struct leat_rng rng;

	(void)state;
	leat_rng_init(&rng, 5, 0, 0, 0);
	for (int i = 0; i < 20000; i++) {
		size_t len = (size_t)leat_rng_below(&rng, i % 10 ? 30 : sizeof text);

		for (size_t k = 0; k < len; k++)
			text[k] = letters[leat_rng_below(&rng, sizeof letters - 1)];
		show_whole(text, len, whole);
		show_pieces(text, len, 8 + (size_t)leat_rng_below(&rng, 40), pieces);
		assert_string_equal(pieces, whole);
	}
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
		cmocka_unit_test(pieces_give_the_same_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
