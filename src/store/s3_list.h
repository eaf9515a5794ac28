/* s3_list.h - read the XML of a ListObjectsV2 answer, of errors and of new uploads
 *
 * A scanner for exactly this kind of XML, not a general parser: elements, text, the five named
 * entities and numeric ones. No DTD, so no entity can expand. Anything else is refused.
 *
 * Threads: any; there is no state. */
#ifndef LEAT_STORE_S3_LIST_H
#define LEAT_STORE_S3_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct leat_s3_entry {
	const char *key; /* decoded; an object's key, or a prefix that ends in the delimiter */
	bool is_prefix;
	uint64_t size;
	const char *etag;
	int64_t modified; /* seconds since 1970 */
};

typedef enum leat_status leat_s3_visit(void *arg, const struct leat_s3_entry *entry, struct leat_err *err);

/* Changes the text. `next` is the token of the next page, within the text; NULL: this is the last one. */
enum leat_status leat_s3_list_parse(char *text, size_t len, leat_s3_visit *visit, void *arg, const char **next,
                                    struct leat_err *err);

/* The code of an error, such as "NoSuchKey", and its message, printable; "": none. */
void leat_s3_error_parse(const char *text, size_t len, char *code, size_t code_cap, char *message, size_t message_cap);

/* The id of a new multipart upload. False: this is not the answer that has one. */
bool leat_s3_upload_parse(const char *text, size_t len, char *id, size_t cap);

/* Seconds since 1970 of "2009-10-12T17:50:30.000Z"; 0: it is none. */
int64_t leat_s3_time(const char *text);

#endif
