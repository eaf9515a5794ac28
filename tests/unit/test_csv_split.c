/* test_csv_split.c - records of dirty CSV files: exactly the bad ones are bad */
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
#include "table/csv_split.h"

enum { SHOWN = 1 << 14 };

static struct leat_mem mem;

/* ---- reading a text in pieces ---- */

struct text {
	const char *bytes;
	size_t len, pos, most; /* `most`: bytes at a time */
};

static enum leat_status
read_text(void *arg, void *to, size_t len, size_t *got, struct leat_err *err)
{
	struct text *text = arg;
	size_t left = text->len - text->pos;

	(void)err;
	*got = left < len ? left : len;
	*got = *got < text->most ? *got : text->most;
	memcpy(to, text->bytes + text->pos, *got);
	text->pos += *got;
	return LEAT_OK;
}

static void
open_text(struct leat_csv_split *split, struct text *text, const char *bytes, size_t len, size_t piece, size_t columns,
          size_t max_record)
{
	*text = (struct text){bytes, len, 0, piece};
	assert_int_equal(
		leat_csv_split_open(split, &(struct leat_csv_bytes){read_text, text}, ',', max_record, &mem, NULL),
		LEAT_OK);
	split->piece = piece;
	split->columns = columns;
}

static const char *const faults[] = {
	[LEAT_FAULT_NONE] = "good",   [LEAT_FAULT_COLUMNS] = "columns", [LEAT_FAULT_UNCLOSED] = "unclosed",
	[LEAT_FAULT_AFTER] = "after", [LEAT_FAULT_INSIDE] = "inside",   [LEAT_FAULT_RETURN] = "return",
	[LEAT_FAULT_BREAK] = "break", [LEAT_FAULT_NUL] = "nul",         [LEAT_FAULT_UTF8] = "utf8",
	[LEAT_FAULT_LONG] = "long",
};

static void
add(char *got, const char *fmt, ...)
{
	size_t used = strlen(got);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(got + used, SHOWN - used, fmt, ap);
	va_end(ap);
}

/* All records as text: fields in <>, good ones ended by ;, bad ones as {line fault column raw}. */
static void
show(const char *text, size_t len, size_t piece, size_t columns, size_t max_record, char got[SHOWN])
{
	struct leat_csv_record record;
	struct leat_csv_split split;
	struct text from;

	*got = '\0';
	open_text(&split, &from, text, len, piece, columns, max_record);
	while (leat_csv_split_next(&split, &record, NULL) == LEAT_OK) {
		if (record.fault == LEAT_FAULT_NONE) {
			add(got, "%llu:", (unsigned long long)record.line);
			for (size_t i = 0; i < record.fields; i++)
				add(got, "<%.*s>", (int)record.field[i].len, record.field[i].text);
			add(got, ";");
		} else {
			add(got, "{%llu %s %zu %.*s}", (unsigned long long)record.line, faults[record.fault],
			    record.column, (int)record.raw_len, record.raw);
		}
	}
	leat_csv_split_close(&split);
	assert_int_equal(mem.used, 0);
}

static void
records_are(const char *text, size_t len, size_t columns, size_t max_record, const char *expected)
{
	char got[SHOWN];

	for (size_t piece = 1; piece < 400; piece = piece * 3 / 2 + 1) {
		show(text, len, piece, columns, max_record, got);
		assert_string_equal(got, expected);
	}
}

#define RECORDS(columns, text, expected) records_are(text, sizeof(text) - 1, columns, 1000, expected)
#define SHORT(text, expected) records_are(text, sizeof(text) - 1, 2, 20, expected)

/* ---- what records are ---- */

static void
records_are_those_of_rfc_4180(void **state)
{
	(void)state;
	RECORDS(0, "", "");
	RECORDS(0, "a", "1:<a>;");
	RECORDS(0, "a,b\nc,d\n", "1:<a><b>;2:<c><d>;");
	RECORDS(0, "a,b\r\n\"c\",d\r\n", "1:<a><b>;2:<c><d>;");
	RECORDS(0, ",\n\n\r\n,x", "1:<><>;4:<><x>;");
	RECORDS(0, "\"a,\"\"b\"\"\",\"c\nd\r\ne\"\nf,g", "1:<a,\"b\"><c\nd\r\ne>;4:<f><g>;");
	RECORDS(0, "\"\"\n", "1:<>;");
	RECORDS(0,
	        "\xef\xbb\xbf"
	        "a,b\n",
	        "1:<a><b>;");
	RECORDS(0, "a\r", "1:<a>;");
	RECORDS(0, "\"\"\"\"\n", "1:<\">;");
}

static void
a_bad_record_costs_no_good_one(void **state)
{
	(void)state;
	RECORDS(2, "a,1\nb\nc,3\n", "1:<a><1>;{2 columns 1 b}3:<c><3>;");
	RECORDS(2, "a,1\nb,2,x\nc,3\n", "1:<a><1>;{2 columns 2 b,2,x}3:<c><3>;");
	/* text after a closing quote */
	RECORDS(2, "\"a\" x,1\nb,2\n", "{1 after 0 \"a\" x,1}2:<b><2>;");
	/* a quote inside */
	RECORDS(2, "a,5\" pipe\nb,2\n", "{1 inside 1 a,5\" pipe}2:<b><2>;");
	/* never closed: to the end, into another field's quote, and where a quote seems to close it */
	RECORDS(2, "\"a,1\nb,2\nc,3\n", "{1 unclosed 0 \"a,1}2:<b><2>;3:<c><3>;");
	RECORDS(2, "\"a,1\nb,2\n\"c\",3\nd,4", "{1 unclosed 0 \"a,1}2:<b><2>;3:<c><3>;4:<d><4>;");
	RECORDS(2, "x,\"a\nb,2\nc,\"3\"\nd,4", "{1 unclosed 1 x,\"a}2:<b><2>;3:<c><3>;4:<d><4>;");
	RECORDS(2, "\"a,1\nb,2\nc\" x,3\nd,4", "{1 unclosed 0 \"a,1}2:<b><2>;{3 inside 0 c\" x,3}4:<d><4>;");
	RECORDS(3, "1,\"a,x\n2,\"\n\",y\n3,4,5\n", "{1 unclosed 1 1,\"a,x}2:<2><\n><y>;4:<3><4><5>;");
	/* two that follow each other stay two */
	RECORDS(2, "a\"b,1\nc\"d,2\ne,3\n", "{1 inside 0 a\"b,1}{2 inside 0 c\"d,2}3:<e><3>;");
	RECORDS(2, "\"a,1\n\"b,2\nc,3\n", "{1 unclosed 0 \"a,1}{2 unclosed 0 \"b,2}3:<c><3>;");
	/* a CR alone */
	RECORDS(2, "a,1\rb,2\nc,3\n", "{1 return 1 a,1\rb,2}2:<c><3>;");
}

static void
a_bad_record_of_several_lines_is_one(void **state)
{
	(void)state;
	RECORDS(2, "\"a\nb\",2,3\nc,4\n", "{1 columns 2 \"a\nb\",2,3}3:<c><4>;");
	RECORDS(2, "\"two\nlines\" x,3\nc,4\n", "{1 after 0 \"two\nlines\" x,3}3:<c><4>;");
	RECORDS(3, "1,\"two\nlines\",bro\"ken\n2,3,4\n", "{1 inside 2 1,\"two\nlines\",bro\"ken}3:<2><3><4>;");
	RECORDS(2, "\"a\nb\xff\",2\nc,4\n", "{1 utf8 0 \"a\nb\xff\",2}3:<c><4>;");
}

static void
bytes_that_are_no_text_are_bad(void **state)
{
	(void)state;
	RECORDS(2, "a,\xc3\xa4\nb,\xc3\nc,\xed\xa0\x80\nd,\xe2\x82\xac\n",
	        "1:<a><\xc3\xa4>;{2 utf8 1 b,\xc3}{3 utf8 1 c,\xed\xa0\x80}4:<d><\xe2\x82\xac>;");
	RECORDS(2, "a,1\nb\0,2\nc,3", "1:<a><1>;{2 nul 0 b}3:<c><3>;"); /* %.*s ends at the NUL */
}

static void
long_records_are_bad_and_skipped(void **state)
{
	(void)state;
	SHORT("a,1\n012345678901234567890123456789,2\nb,3\n", "1:<a><1>;{2 long 0 0123456789012345678901}3:<b><3>;");
	/* a quote that runs on for longer than a record may be */
	SHORT("\"a,1\nbbbbbbbb,2\ncccccccc,3\nd,\"4\"\n",
	      "{1 unclosed 0 \"a,1}2:<bbbbbbbb><2>;3:<cccccccc><3>;4:<d><4>;");
	SHORT("\"abcdefgh\nabcdefg\",1\n", "1:<abcdefgh\nabcdefg><1>;");
}

static void
line_breaks_are_for_texts(void **state)
{
	static const bool one_line[] = {true, false};
	static const char text[] = "\"1\n\",x\n2,\"y\nz\"\n\"3,a\n4,b\n\",c\n";
	char got[SHOWN] = "";
	struct leat_csv_record record;
	struct leat_csv_split split;
	struct text from;

	(void)state;
	open_text(&split, &from, text, sizeof(text) - 1, 7, 2, 100);
	split.one_line = one_line;
	while (leat_csv_split_next(&split, &record, NULL) == LEAT_OK)
		add(got, "%llu %s %zu;", (unsigned long long)record.line, faults[record.fault], record.column);
	/* the third has good lines inside, so its quote was not closed; what closed it is a bad line */
	assert_string_equal(got, "1 break 0;3 good 0;5 unclosed 0;6 good 0;7 unclosed 0;");
	leat_csv_split_close(&split);
}

/* ---- any bytes ---- */

/* The raw texts, in their order, are the file but for line ends. */
static void
check_whole(const char *text, size_t len, size_t piece, size_t columns)
{
	struct leat_csv_record record;
	struct leat_csv_split split;
	struct text from;
	size_t at = 0;

	open_text(&split, &from, text, len, piece, columns, 1000);
	while (leat_csv_split_next(&split, &record, NULL) == LEAT_OK) {
		while (at < len && (text[at] == '\n' || text[at] == '\r') &&
		       memcmp(text + at, record.raw, record.raw_len))
			at++;
		assert_true(at + record.raw_len <= len);
		assert_memory_equal(text + at, record.raw, record.raw_len);
		at += record.raw_len;
	}
	while (at < len && (text[at] == '\n' || text[at] == '\r'))
		at++;
	assert_int_equal(at, len);
	leat_csv_split_close(&split);
}

static void
pieces_do_not_matter_and_nothing_is_lost(void **state)
{
	static const char letters[] = "ab\"\"\",,,\n\n\n\r\xc3";
	char text[300], one[SHOWN], other[SHOWN];
	struct leat_rng rng;

	(void)state;
	leat_rng_init(&rng, 7, 0, 0, 0);
	for (int i = 0; i < 20000; i++) {
		size_t len = (size_t)leat_rng_below(&rng, i % 10 ? 30 : sizeof text), columns = leat_rng_below(&rng, 4);
		size_t most = i % 3 ? 1000 : 5 + leat_rng_below(&rng, 30);

		for (size_t k = 0; k < len; k++)
			text[k] = letters[leat_rng_below(&rng, sizeof letters - 1)];
		show(text, len, 1000, columns, most, one);
		show(text, len, 1 + (size_t)leat_rng_below(&rng, 40), columns, most, other);
		assert_string_equal(other, one);
		check_whole(text, len, 1 + (size_t)leat_rng_below(&rng, 40), columns);
	}
}

/* ---- planted errors ---- */

enum { ROWS = 60000, MAX_TEXT = 120, COLUMNS = 4 };

struct dirty {
	struct leat_rng rng;
	char *text;
	size_t len, cap;
	struct {
		size_t begin, end; /* in `text`, without the line end */
		uint64_t line;
		bool good;
		char field[COLUMNS][MAX_TEXT];
	} * row;
	uint64_t line;
};

static void
put(struct dirty *d, const char *text)
{
	size_t len = strlen(text);

	assert_true(d->len + len < d->cap);
	memcpy(d->text + d->len, text, len);
	d->len += len;
	for (size_t i = 0; i < len; i++)
		d->line += text[i] == '\n';
}

/* A value with all that quotes are for. It does not begin with a delimiter or line break: after a quote that was never
 * closed, these would look like the end of a good field. */
static void
draw_value(struct dirty *d, char value[MAX_TEXT])
{
	static const char *const parts[] = {"a",  "bc",   "12.5",     " ",      ",", "\"",
	                                    "\n", "\r\n", "\xc3\xa4", "x\ny,z", "",  "-7"};
	size_t used = (size_t)snprintf(value, MAX_TEXT, "%s", leat_rng_below(&d->rng, 4) ? "v" : "");
	size_t n = used ? leat_rng_below(&d->rng, 6) : 0;

	for (size_t i = 0; i < n; i++) {
		/* plain values are more frequent */
		const char *part = parts[leat_rng_below(&d->rng, leat_rng_below(&d->rng, 3) ? 4 : 12)];

		used += (size_t)snprintf(value + used, MAX_TEXT - used, "%s", part);
	}
	value[used] = '\0';
}

static void
put_value(struct dirty *d, const char *value)
{
	bool quoted = strpbrk(value, ",\"\n\r") || leat_rng_below(&d->rng, 5) == 0;

	put(d, quoted ? "\"" : "");
	for (; *value; value++) {
		char text[3] = {*value, *value == '"' ? '"' : '\0', '\0'};

		put(d, text);
	}
	put(d, quoted ? "\"" : "");
}

/* A record that must be rejected, alone. */
static void
put_bad(struct dirty *d)
{
	static const char *const bad[] = {
		"one,two",                     /* too few */
		"1,2,3,4,5",                   /* too many */
		"\"1\" x,2,3,4",               /* text after a quote */
		"1,5\" pipe,3,4",              /* a quote inside */
		"1,2,\"three,4",               /* never closed */
		"\"never closed,2,3,4",        /* the same in front */
		"1,2\r3,3,4",                  /* CR alone */
		"1,\xff,3,4",                  /* not UTF-8 */
		"1,\"\xe2\x82\",3,4",          /* half a character */
		",",                           /* too few, empty */
		"\"a\nb\",2",                  /* too few, two lines */
		"1,\"a\nb\",\"c\nd\",\"e\",5", /* too many, three lines */
		"1,\"\xc3(\n\",3,4",           /* not UTF-8, two lines */
	};

	put(d, bad[leat_rng_below(&d->rng, sizeof(bad) / sizeof(*bad))]);
}

static void
make_dirty(struct dirty *d, uint64_t seed)
{
	leat_rng_init(&d->rng, seed, 0, 0, 0);
	d->cap = (size_t)ROWS * COLUMNS * MAX_TEXT;
	d->text = malloc(d->cap);
	d->row = calloc(ROWS, sizeof(*d->row));
	d->line = 1;
	assert_non_null(d->text);
	assert_non_null(d->row);
	for (size_t i = 0; i < ROWS; i++) {
		if (leat_rng_below(&d->rng, 50) == 0)
			put(d, "\n");
		d->row[i].begin = d->len;
		d->row[i].line = d->line;
		/* A good one is between two bad ones: of lines in quotes that are no records, nobody can say how many
		 * there were. */
		d->row[i].good = leat_rng_below(&d->rng, 20) > 0 || (i > 0 && !d->row[i - 1].good);
		if (!d->row[i].good)
			put_bad(d);
		for (size_t k = 0; d->row[i].good && k < COLUMNS; k++) {
			draw_value(d, d->row[i].field[k]);
			put(d, k ? "," : "");
			put_value(d, d->row[i].field[k]);
		}
		d->row[i].end = d->len;
		put(d, leat_rng_below(&d->rng, 4) ? "\n" : "\r\n");
	}
}

static void
exactly_the_planted_records_are_bad(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 3; seed++) {
		struct leat_csv_record record;
		struct leat_csv_split split;
		struct dirty d = {.len = 0};
		struct text from;
		size_t i = 0;

		make_dirty(&d, seed);
		open_text(&split, &from, d.text, d.len, 1000 * (size_t)seed, COLUMNS, 100000);
		for (; leat_csv_split_next(&split, &record, NULL) == LEAT_OK; i++) {
			assert_true(i < ROWS);
			assert_int_equal(record.line, d.row[i].line);
			assert_int_equal(record.fault == LEAT_FAULT_NONE, d.row[i].good);
			assert_int_equal(record.raw_len, d.row[i].end - d.row[i].begin);
			assert_memory_equal(record.raw, d.text + d.row[i].begin, record.raw_len);
			for (size_t k = 0; d.row[i].good && k < COLUMNS; k++) {
				assert_int_equal(record.field[k].len, strlen(d.row[i].field[k]));
				assert_memory_equal(record.field[k].text, d.row[i].field[k], record.field[k].len);
			}
		}
		assert_int_equal(i, ROWS);
		leat_csv_split_close(&split);
		free(d.text);
		free(d.row);
	}
}

static void
running_out_of_memory_is_said(void **state)
{
	static const char text[] = "\"a\"\"b\",2\n3,4\n\"x\" y,5\n0123456789012345678901234567890123456789,1\n";

	(void)state;
	for (long after = 0; after < 8; after++) {
		struct leat_csv_record record;
		struct leat_csv_split split;
		enum leat_status status = LEAT_OK;
		struct text from;
		struct leat_err err;

		leat_err_clear(&err);
		mem.fail_after = after;
		open_text(&split, &from, text, sizeof(text) - 1, 10, 2, 30);
		while (status == LEAT_OK)
			status = leat_csv_split_next(&split, &record, &err);
		assert_true(status == LEAT_END || (status == LEAT_NOMEM && *err.text));
		leat_csv_split_close(&split);
		mem.fail_after = -1;
		assert_int_equal(mem.used, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(records_are_those_of_rfc_4180),
		cmocka_unit_test(a_bad_record_costs_no_good_one),
		cmocka_unit_test(a_bad_record_of_several_lines_is_one),
		cmocka_unit_test(bytes_that_are_no_text_are_bad),
		cmocka_unit_test(long_records_are_bad_and_skipped),
		cmocka_unit_test(line_breaks_are_for_texts),
		cmocka_unit_test(pieces_do_not_matter_and_nothing_is_lost),
		cmocka_unit_test(exactly_the_planted_records_are_bad),
		cmocka_unit_test(running_out_of_memory_is_said),
	};

	leat_mem_init(&mem, SIZE_MAX);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
