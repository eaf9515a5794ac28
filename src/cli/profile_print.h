/* profile_print.h - a profile on a terminal */
#ifndef LEAT_CLI_PROFILE_PRINT_H
#define LEAT_CLI_PROFILE_PRINT_H

#include "table/profile.h"

/* Prints a profile as tables, with histograms as block characters. `drift` may be NULL. */
enum leat_status leat_profile_print(const struct leat_profile *profile, const char *name,
                                    const struct leat_profile *then, const char *then_name,
                                    const struct leat_drift *drift, struct leat_err *err);

#endif
