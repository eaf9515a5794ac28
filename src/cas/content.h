/* content.h - what an output or an input is made of, by content
 *
 * A content is a file or a folder, known by its SHA-256. Equal bytes are equal contents, whatever made them and
 * wherever they are. The digest of a folder is that of its *tree*: a text with one line for each entry, sorted by name,
 * which is itself a blob:
 *
 *	f 9f86d081884c7d65... 1024 scores.npy      a file
 *	x 2c26b46b68ffc68f... 88 run.sh            a file that can be executed
 *	d fcde2b2edba56bf4... 5120 plots           a folder: the digest of its tree, bytes of all files in it
 *	l ../latest.npy latest.npy                 a symbolic link that stays inside the folder
 *
 * In names and link targets, '%', bytes below 33 and 127 are written %HH. */
#ifndef LEAT_CAS_CONTENT_H
#define LEAT_CAS_CONTENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/str.h"

struct leat_digest {
	uint8_t byte[LEAT_SHA256_BYTES];
};

enum leat_content_kind { LEAT_CONTENT_NONE, LEAT_CONTENT_FILE, LEAT_CONTENT_EXECUTABLE, LEAT_CONTENT_FOLDER };

struct leat_content {
	struct leat_digest digest;
	uint64_t bytes; /* of the file, or of all files in the folder */
	enum leat_content_kind kind;
};

static inline bool
leat_digest_equal(const struct leat_digest *a, const struct leat_digest *b)
{
	return !memcmp(a->byte, b->byte, sizeof(a->byte));
}

bool leat_content_equal(const struct leat_content *a, const struct leat_content *b); /* kind and digest */

/* "folder 5120 fcde2b2e...": for keys, manifests and people. leat_content_parse is its inverse; LEAT_DATA. */
enum { LEAT_CONTENT_TEXT = 112 };
char *leat_content_text(const struct leat_content *content, char buf[LEAT_CONTENT_TEXT]);
enum leat_status leat_content_parse(const char *text, struct leat_content *content, struct leat_err *err);
bool leat_digest_parse(const char *hex, struct leat_digest *digest); /* exactly 64 lower-case digits */

/* Trees. Entries must be added in the order of their names by bytes (strcmp), else LEAT_INVALID. */
enum leat_status leat_tree_add(struct leat_str *tree, const char *name, const struct leat_content *content,
                               struct leat_err *err);
enum leat_status leat_tree_add_link(struct leat_str *tree, const char *name, const char *target, struct leat_err *err);

/* Does a link to `target` stay inside of the top folder, if it is in a folder `depth` levels below that? Only leading
 * ".." are allowed: "a/.." may be anywhere if a is a link. */
bool leat_link_stays(const char *target, size_t depth);

/* Reads a tree, which is hostile input: names with '/', "", "." and "..", absolute links, ".." after a name in a link,
 * wrong order and doubled names are LEAT_DATA. A tree does not know how deep it is: what follows links asks
 * leat_link_stays. `target` is NULL unless the entry is a link, whose content is LEAT_CONTENT_NONE. The texts are valid
 * during the call. */
struct leat_tree_reader {
	enum leat_status (*entry)(void *arg, const char *name, const struct leat_content *content, const char *target,
	                          struct leat_err *err);
	void *arg;
};
enum leat_status leat_tree_read(const char *text, size_t len, const struct leat_tree_reader *reader,
                                struct leat_err *err);

#endif
