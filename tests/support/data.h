/* data.h - data sets for tests: TFRecord files of Examples with small images, and ways to damage them
 *
 * Sample i is the same in every data set: a JPEG image (or what `kind` says), `label` = i, `tokens`
 * (i % 7 numbers) and `box` (four floats), so that the example text of the op `example` fits them.
 * Everything lies in a folder of its own under TMPDIR, or /tmp. One thread. */
#ifndef TEST_DATA_H
#define TEST_DATA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum data_kind {
	DATA_GOOD,
	DATA_CUT,   /* half of the JPEG: a whole record with a bad image */
	DATA_LARGE, /* an image of 2000 x 1500 */
	DATA_BOAST, /* a JPEG whose header claims 65500 x 65500 pixels */
};

struct data {
	char folder[200];
	size_t files, records;
	struct data_place {
		size_t file;
		uint64_t offset, length; /* of the record with its frame */
	} * place;                       /* by sample */
};

/* Files part-00.tfrecord, ... of counts[i] records each. kind: NULL, all good. */
void data_make(struct data *data, size_t files, const size_t *counts, enum data_kind (*kind)(size_t sample));
/* One file with records of the test's own making: `make` adds the features of record i. */
struct leat_example;
void data_make_file(struct data *data, size_t records, void (*make)(struct leat_example *example, size_t i));
void data_copy(struct data *to, const struct data *from);
void data_remove(struct data *data);

/* The set-up and tear-down of tests that share `data`: files of counts[i] records. */
#define DATA_FIXTURE(kind)                                                                                             \
	static int setup(void **state)                                                                                 \
	{                                                                                                              \
		(void)state;                                                                                           \
		data_make(&data, sizeof counts / sizeof *counts, counts, kind);                                        \
		return 0;                                                                                              \
	}                                                                                                              \
                                                                                                                       \
	static int teardown(void **state)                                                                              \
	{                                                                                                              \
		(void)state;                                                                                           \
		data_remove(&data);                                                                                    \
		return 0;                                                                                              \
	}

/* "FOLDER/part-00.tfrecord"; valid until the next call. */
const char *data_path(const struct data *data, size_t file);
/* "tfrecord('FOLDER/part-*.tfrecord')"; valid until the next call. */
const char *data_source(const struct data *data);
void data_forget_indexes(const struct data *data);

void data_flip_payload(const struct data *data, size_t sample); /* one bit: the CRC no longer fits */
void data_flip_header(const struct data *data, size_t sample);
/* Other bytes of the same length, with checksums that fit. */
void data_swap_halves(const struct data *data, size_t sample);
/* Writes what is in the page cache to the disk, then lets go of it. False: this file system keeps it. */
bool data_drop_cache(const struct data *data);

/* A JPEG image, to be freed. Its pixels depend on `seed`. */
unsigned char *data_jpeg(int width, int height, unsigned seed, size_t *size);

#endif
