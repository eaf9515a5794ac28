/* parquet_footer.h - the footer of a Parquet file: where its row groups are
 *
 * DuckDB decodes the data (parquet_decode.h). The footer is read here, for two reasons: opening a table takes only the
 * last bytes of each file, from any store; and DuckDB can be given a file of one row group, which takes a footer that
 * lists that group alone (leat_parquet_footer_cut). Of the footer, a Thrift struct in the compact protocol, everything
 * else is skipped.
 *
 * The footer's bytes are not copied. All input is hostile. Any thread. */
#ifndef LEAT_FORMAT_PARQUET_FOOTER_H
#define LEAT_FORMAT_PARQUET_FOOTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	LEAT_PARQUET_TAIL = 8,         /* length of the footer, and "PAR1" */
	LEAT_PARQUET_CUT_EXTRA = 32,   /* a cut footer is at most this much longer than the whole one */
	LEAT_PARQUET_LEAVES = 1 << 16, /* most leaf columns */
};

struct leat_parquet_footer {
	const unsigned char *bytes;
	size_t len;
	size_t schema, schema_end;               /* the list of columns */
	size_t rows_at, rows_end;                /* the number of rows */
	size_t groups, groups_first, groups_end; /* the list of row groups; its first entry */
	uint64_t rows;
	size_t group_count;
};

struct leat_parquet_group {
	size_t at, end; /* in the footer */
	size_t chunks;  /* where their list begins */
	uint64_t rows;
};

/* A column chunk: the values of a leaf column in a row group. */
struct leat_parquet_chunk {
	uint64_t offset, length; /* in the file */
	uint64_t unpacked;       /* bytes of its pages, decompressed but still encoded */
	bool elsewhere;          /* in another file */
};

/* The length of the footer from the file's last LEAT_PARQUET_TAIL bytes. Returns what is wrong; NULL: nothing. */
const char *leat_parquet_tail(const unsigned char *tail, uint64_t file_size, uint64_t *footer);

/* Returns what is wrong in a few words; NULL: nothing. */
const char *leat_parquet_footer_read(struct leat_parquet_footer *footer, const unsigned char *bytes, size_t len);

/* The row group that begins at `at`: groups_first, then the `end` of the one before. Returns what is wrong. */
const char *leat_parquet_group_read(const struct leat_parquet_footer *footer, size_t at,
                                    struct leat_parquet_group *group);

/* The column chunks of a group, one per leaf in the order of the schema. */
struct leat_parquet_chunks {
	const struct leat_parquet_footer *footer;
	size_t at, end, left;
};
void leat_parquet_chunks_begin(struct leat_parquet_chunks *walk, const struct leat_parquet_footer *footer,
                               const struct leat_parquet_group *group);
bool leat_parquet_chunks_next(struct leat_parquet_chunks *walk, struct leat_parquet_chunk *chunk); /* false: the end */

/* Sets column[i] to the number of the top-level column that leaf i belongs to, and *leaves to their number. `column`
 * has room for LEAT_PARQUET_LEAVES, or is NULL to count. Returns what is wrong. */
const char *leat_parquet_leaves(const struct leat_parquet_footer *footer, uint16_t *column, size_t *leaves);

/* Writes the footer of a file that has only this group, whose chunks are where they were, and the tail. `to` has room
 * for len + LEAT_PARQUET_CUT_EXTRA. Returns its length. */
size_t leat_parquet_footer_cut(const struct leat_parquet_footer *footer, const struct leat_parquet_group *group,
                               unsigned char *to);

#endif
