/* temp_pages.h - memory in an unlinked temporary file
 *
 * For data that must not take memory. The system writes pages to the disk when it needs the room. Any thread. */
#ifndef LEAT_BASE_TEMP_PAGES_H
#define LEAT_BASE_TEMP_PAGES_H

#include <stddef.h>

/* Zeroed, `size` a multiple of the page size. Disk space is reserved, so using the pages cannot fail. munmap ends it.
 * NULL: no room in $TMPDIR, /var/tmp or /tmp, or those are in memory themselves (tmpfs). */
void *leat_temp_pages(size_t size);

#endif
