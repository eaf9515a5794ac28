/* page.h - the page of reports as bytes, made by the build from src/xray/page (scripts/page) */
#ifndef LEAT_XRAY_PAGE_H
#define LEAT_XRAY_PAGE_H

#include <stddef.h>

/* The data goes between the halves. */
extern const unsigned char leat_page_begin[], leat_page_end[], leat_page_policy[]; /* policy: NUL-terminated */
extern const size_t leat_page_begin_size, leat_page_end_size, leat_page_policy_size;

#endif
