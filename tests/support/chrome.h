/* chrome.h - a trace file, read and held to the rules of the Trace Event Format
 *
 * The rules that viewers rely on: an array of objects; each has a phase, a process and a thread; spans (X) have a time
 * and a duration of at least 0, and those of a thread are disjoint or nested; every thread with spans has a name;
 * values (C) are finite numbers, and those of a track come in order. */
#ifndef TEST_CHROME_H
#define TEST_CHROME_H

#include <jansson.h>
#include <stddef.h>

/* Fails the test, naming what is wrong. The caller frees it by json_decref. */
json_t *chrome_read(const char *path);

/* Spans with this tag, this name, or any (NULL). */
size_t chrome_spans(json_t *trace, const char *tag, const char *name);
/* Values of a track; *last, if not NULL, is the last one. */
size_t chrome_values(json_t *trace, const char *track, double *last);
/* The text of a piece of metadata; "": there is none. */
const char *chrome_text(json_t *trace, const char *what, const char *key);
/* Is there a thread with this name? */
int chrome_has_lane(json_t *trace, const char *name);

#endif
