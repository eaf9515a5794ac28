/* csv_split.h - the records of a CSV file, good and bad, one at a time
 *
 * Reads a file of any size in pieces and hands out every record exactly once, in order. A record that breaks the rules
 * of RFC 4180 is handed out with what is wrong with it and its raw text, and the next one begins at the next line that
 * parses, so that one bad record costs no good ones:
 *
 *	- A quote that is never closed, or that runs into the opening quote of a later field: only its line is bad.
 *	- Another error in a record of several lines (a wrong number of fields, text after a closing quote): the record
 *	  ends where one of its lines begins a good record; else it is bad as a whole.
 *
 * The raw texts of all records, the line ends after them and the empty lines between them make up the file. What is
 * handed out does not depend on how the file arrives in pieces. Empty lines are skipped and counted, as is a byte order
 * mark. Time is linear in the size of the file, whatever it holds. One thread. */
#ifndef LEAT_TABLE_CSV_SPLIT_H
#define LEAT_TABLE_CSV_SPLIT_H

#include "base/err.h"
#include "table/csv_scan.h"

struct leat_mem;

enum { LEAT_CSV_MAX_FIELDS = 1 << 16, LEAT_CSV_PIECE = 256 * 1024 };

/* What is wrong with a record. */
enum leat_csv_fault {
	LEAT_FAULT_NONE,
	LEAT_FAULT_COLUMNS,  /* wrong number of fields */
	LEAT_FAULT_UNCLOSED, /* quoted field that is not closed */
	LEAT_FAULT_AFTER,    /* text after a closing quote */
	LEAT_FAULT_INSIDE,   /* quote inside an unquoted field */
	LEAT_FAULT_RETURN,   /* CR without LF */
	LEAT_FAULT_BREAK,    /* line break in a column that cannot have one */
	LEAT_FAULT_NUL,
	LEAT_FAULT_UTF8,
	LEAT_FAULT_LONG, /* longer than max_record; `raw` is its beginning */
};

struct leat_csv_record {
	uint64_t line;         /* where it begins, from 1 */
	const char *raw;       /* without the line end after it */
	size_t raw_len, bytes; /* `bytes`: of all of it, if it is too long */
	enum leat_csv_fault fault;
	size_t column; /* of the fault: number of the field, from 0 */
	/* Of a good record, decoded: `doubled` and `breaks` say what it was. Of one with LEAT_FAULT_COLUMNS only the
	 * count. */
	const struct leat_csv_field *field;
	size_t fields;
};

/* Where the bytes come from: fills `to` with 1 to `len` bytes; *got 0: the end. */
struct leat_csv_bytes {
	enum leat_status (*read)(void *arg, void *to, size_t len, size_t *got, struct leat_err *err);
	void *arg;
};

struct leat_csv_split {
	struct leat_csv_bytes bytes;
	struct leat_csv_scan scan;
	struct leat_mem *mem;
	size_t max_record, piece; /* piece: bytes to read at a time, at least */
	bool lines;               /* records are lines, without fields: for JSON. Set before the first */
	size_t columns;           /* fields that a record must have; 0: any number */
	const bool *one_line;     /* columns whose values never have line breaks; NULL: none */
	char *buffer;
	size_t cap, len, pos;
	char *plain; /* fields with doubled quotes, decoded */
	size_t plain_cap;
	uint64_t line, empty_lines;
	bool ended, begun;
};

/* `max_record`: bytes of the longest record that is accepted, at most LEAT_CSV_MAX_RECORD. `columns` and `one_line` may
 * be set between records: after the header, say. */
enum leat_status leat_csv_split_open(struct leat_csv_split *split, const struct leat_csv_bytes *bytes, char delimiter,
                                     size_t max_record, struct leat_mem *mem, struct leat_err *err);
void leat_csv_split_close(struct leat_csv_split *split); /* accepts a zeroed one */
/* LEAT_END: no more. A bad record is LEAT_OK; failures are those of `bytes` and of memory. The record is valid until
 * the next call. */
enum leat_status leat_csv_split_next(struct leat_csv_split *split, struct leat_csv_record *record,
                                     struct leat_err *err);

#endif
