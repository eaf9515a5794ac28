/* size.h - parse and format sizes in bytes
 *
 *	size = number [unit]              4MiB, 512 kB, 1.5G, 100
 *	unit = [k|M|G|T] [i] [B]          in upper or lower case
 *
 * With an i, units are powers of 1024 (KiB, Mi), otherwise powers of 1000 (kB, M). Sizes are rounded to whole bytes.
 * Specs, command-line flags and Python share one parser: leat_parse_size and options of type SIZE agree.
 * Below 1 PiB they can parse the output of leat_format_size. */
#ifndef LEAT_BASE_SIZE_H
#define LEAT_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>

/* Bytes per unit: 1048576 for "MiB". False: unknown unit. */
bool leat_size_unit(const char *unit, double *bytes);

/* Writes "1.5 GiB" to buf. Returns buf. */
char *leat_format_size(char *buf, size_t cap, unsigned long long bytes);
/* Rounds up, for messages that say how much is needed. */
char *leat_format_size_up(char *buf, size_t cap, unsigned long long bytes);

#endif
