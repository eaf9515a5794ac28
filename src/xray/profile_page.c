/* profile_page.c - see profile_page.h */
#include "xray/profile_page.h"

#include "leat.h"
#include "xray/report.h"

void
leat_profile_page(struct leat_str *page, const json_t *profile)
{
	leat_str_addn(page, leat_profile_page_begin, leat_profile_page_begin_size);
	leat_str_addf(page, "<script type=\"application/json\" id=\"leat-about\">{\"version\":\"%s\"}</script>\n",
	              leat_version());
	leat_page_add(page, "leat-profile", profile);
	leat_str_addn(page, leat_profile_page_end, leat_profile_page_end_size);
}
