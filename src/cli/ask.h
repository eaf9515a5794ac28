/* ask.h - what the commands that ask about actions share: why, made, show, log, diff */
#ifndef LEAT_CLI_ASK_H
#define LEAT_CLI_ASK_H

#include <stdio.h>

#include "cas/index.h"
#include "cas/manifest.h"
#include "cli/steps.h"

/* Opens project and store for reading; without a store LEAT_DATA. */
enum leat_status leat_ask_open(struct leat_steps *steps, struct leat_mem *mem, const char *project,
                               enum leat_looks looks, struct leat_err *err);

/* A step and one of its slices, from "decode" or "decode:subject=3,bin=7". */
struct leat_asked {
	const struct leat_step *step;
	size_t slice;     /* SIZE_MAX: the step is sliced, and none was named */
	char *slice_text; /* as manifests have it; NULL with SIZE_MAX. Free with leat_free */
};
enum leat_status leat_ask_step(const struct leat_steps *steps, const char *text, struct leat_asked *asked,
                               struct leat_err *err);
/* "decode-42": sets step and number. False: it is not an id. */
bool leat_ask_is_id(const char *text, char step[256], uint64_t *number);
/* The manifest of an id, or of the last action of a step and slice. Free with leat_manifest_free. */
enum leat_status leat_ask_action(const struct leat_steps *steps, const char *text, struct leat_manifest **manifest,
                                 struct leat_err *err);

/* "file, 1.2 KiB, 9f86d081884c" of a content's text; other texts as they are. Returns buf. */
enum { LEAT_ASK_TEXT = 160 };
char *leat_ask_content(const char *text, char buf[LEAT_ASK_TEXT]);
/* Appends ", made by decode-42" if the store knows which action made a content. */
void leat_ask_maker(struct leat_cas *cas, const char *text, struct leat_str *out);
/* Appends a line for each entry that differs between two folders, if both are trees of the store. */
void leat_ask_folders(struct leat_cas *cas, const char *was, const char *now, struct leat_str *out);
/* Appends "since clean-3: amount PSI 0.31, JS 0.05; 8 others below 0.1" of a manifest's profile; nothing if it was not
 * compared. */
void leat_ask_drift(const struct leat_manifest *manifest, struct leat_mem *mem, struct leat_str *out);
/* "2026-11-17 20:15:31", local time. */
char *leat_ask_time(double seconds, char buf[LEAT_ASK_TEXT]);
/* Prints a label and a text of one or more lines, which are indented alike. */
void leat_ask_print(const char *label, int width, const char *text);

#endif
