/* size.h - sizes in bytes as people write and read them
 *
 *	size = number [unit]              4MiB, 512 kB, 1.5G, 100
 *	unit = [k|M|G|T] [i] [B]          in upper or lower case
 *
 * With an i, units count in 1024s (KiB, Mi), else in thousands (kB, M). A size is rounded to whole bytes.
 * Specs, flags of the command and Python read sizes with leat_parse_size or an option of type SIZE, which agree.
 * leat_format_size writes what they read, below 1 PiB. */
#ifndef LEAT_BASE_SIZE_H
#define LEAT_BASE_SIZE_H

#include <stdbool.h>
#include <stddef.h>

/* The bytes of one unit: 1048576 for "MiB". False: there is no such unit. */
bool leat_size_unit(const char *unit, double *bytes);

/* "1.5 GiB", into buf. Returns buf. */
char *leat_format_size(char *buf, size_t cap, unsigned long long bytes);
/* The same rounded up, for a size that is needed. */
char *leat_format_size_up(char *buf, size_t cap, unsigned long long bytes);

#endif
