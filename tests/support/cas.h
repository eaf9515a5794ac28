/* cas.h - a content store in a temporary folder, and manifests to put into it */
#ifndef TEST_CAS_H
#define TEST_CAS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cas/index.h"
#include "support/temp.h"

struct store {
	struct temp temp;
	struct leat_mem mem;
	struct leat_cas *cas;
	char folder[128];
};

/* cmocka's state is a struct store. Its folder is made, nothing is open. store_teardown checks that no memory is left.
 */
int store_setup(void **state);
int store_teardown(void **state);

void store_open(struct store *store, enum leat_cas_mode mode); /* with a run, if for writing */
void store_close(struct store *store);
/* A path in the store; valid until the next call. */
const char *store_path(struct store *store, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
size_t store_count(struct store *store, const char *folder); /* files below it */

/* A file under tmp/RUN with these bytes, to be taken. */
void store_make(struct store *store, const char *bytes, char path[PATH_MAX]);
struct leat_content store_take(struct store *store, const char *bytes); /* a file with these bytes */

/* A manifest with two fields, "command" and "import.x" (learned; none if NULL), and this output. */
struct action {
	struct leat_manifest manifest;
	struct leat_key_field field[2];
	struct leat_digest stem;
};
void store_action(struct action *action, const char *command, const char *import, const struct leat_content *output);
/* Gives it a number and records it. */
void store_record(struct store *store, struct action *action);
/* Takes `bytes` and records the action `command` of `step` that made them. */
struct leat_content store_made(struct store *store, const char *step, const char *command, const char *bytes);
/* The newest action with this stem; false: none. */
bool store_find(struct store *store, const struct leat_digest *stem, struct leat_made *made);
void store_stem(const char *command, struct leat_digest *stem);

#define must(call)                                                                                                     \
	do {                                                                                                           \
		struct leat_err must_err;                                                                              \
		leat_err_clear(&must_err);                                                                             \
		struct leat_err *err = &must_err;                                                                      \
		if ((call) != LEAT_OK)                                                                                 \
			fail_msg("%s: %s", #call, must_err.text);                                                      \
	} while (0)

#endif
