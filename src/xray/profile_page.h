/* profile_page.h - the page of a table's profile, made by the build from src/xray/page (scripts/page) */
#ifndef LEAT_XRAY_PROFILE_PAGE_H
#define LEAT_XRAY_PROFILE_PAGE_H

#include <jansson.h>

#include "base/str.h"

/* The data goes between the halves. */
extern const unsigned char leat_profile_page_begin[], leat_profile_page_end[];
extern const unsigned char leat_profile_page_policy[]; /* NUL-terminated */
extern const size_t leat_profile_page_begin_size, leat_profile_page_end_size, leat_profile_page_policy_size;

/* Appends the whole page. `profile` is what leat_profile_json gives, with the names of the tables. */
void leat_profile_page(struct leat_str *page, const json_t *profile);

#endif
