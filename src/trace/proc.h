/* proc.h - parsers for the text of /proc and of cgroups
 *
 * Pure functions over `len` bytes that need not end with a NUL, may be cut off anywhere, and may hold anything: a
 * thread chooses its name, spaces, parentheses and control characters included. They allocate nothing. Any thread. */
#ifndef LEAT_TRACE_PROC_H
#define LEAT_TRACE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LEAT_PROC_NAME = 32 };

struct leat_proc_stat {
	char name[LEAT_PROC_NAME]; /* printable ASCII: other bytes are '?'; cut off if it is longer */
	uint64_t ticks;            /* CPU time in user and system mode, in clock ticks */
	uint64_t start;            /* tells two threads apart that have had the same id */
};

struct leat_proc_net {
	uint64_t bytes;    /* received and sent by interfaces to other machines */
	uint64_t loopback; /* received by lo, which counts each byte as sent, too */
};

/* /proc/PID/stat or /proc/PID/task/TID/stat. */
bool leat_proc_parse_stat(const char *text, size_t len, struct leat_proc_stat *stat);
/* /proc/PID/statm: resident pages. */
bool leat_proc_parse_statm(const char *text, size_t len, uint64_t *resident);
/* /proc/net/dev. False: there is no interface. */
bool leat_proc_parse_net(const char *text, size_t len, struct leat_proc_net *net);
/* The number on the line "KEY: NUMBER" or "KEY NUMBER", as in /proc/PID/io and cpu.stat. */
bool leat_proc_find(const char *text, size_t len, const char *key, uint64_t *value);
/* Takes the next id from a list of them, as in /proc/PID/task/TID/children, and moves *text past it. 0: no more. */
int leat_proc_next_id(const char **text, const char *end);

#endif
