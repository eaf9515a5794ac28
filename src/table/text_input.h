/* text_input.h - the bytes of a file, decompressed: plain, gzip or Zstandard by its first bytes
 *
 * Compressed data that ends early, is damaged, or is followed by something else is LEAT_DATA: never a short file
 * without a word. gzip checksums are verified; several members or frames are one text. libzstd is loaded when a file
 * needs it. Memory does not depend on the file. One thread. */
#ifndef LEAT_TABLE_TEXT_INPUT_H
#define LEAT_TABLE_TEXT_INPUT_H

#include "base/err.h"

struct leat_csv_bytes;
struct leat_mem;
struct leat_text_input;

/* `name`: of the file in errors. */
enum leat_status leat_text_input_open(struct leat_text_input **input, const char *path, const char *name,
                                      struct leat_mem *mem, struct leat_err *err);
/* The same with bytes from elsewhere, which stay valid. */
enum leat_status leat_text_input_open_bytes(struct leat_text_input **input, const struct leat_csv_bytes *bytes,
                                            const char *name, struct leat_mem *mem, struct leat_err *err);
void leat_text_input_close(struct leat_text_input *input); /* accepts NULL */
/* Reads 1 to `len` bytes; *got 0: the end. `input` is a struct leat_text_input: fits struct leat_csv_bytes. */
enum leat_status leat_text_input_read(void *input, void *to, size_t len, size_t *got, struct leat_err *err);
/* Bytes of the file that have been read, for progress. */
uint64_t leat_text_input_offset(const struct leat_text_input *input);

#endif
