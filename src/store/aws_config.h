/* aws_config.h - values from ~/.aws/config and ~/.aws/credentials
 *
 * Sections in brackets, "name = value" lines, comments after # or ; at the start of a line or
 * after a blank. Indented lines belong to the value above and are skipped.
 *
 * Threads: any; there is no state. */
#ifndef LEAT_STORE_AWS_CONFIG_H
#define LEAT_STORE_AWS_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/mem.h"

/* Finds `name` in the section `section`. False: it is not there, or does not fit. */
bool leat_aws_config_get(const char *text, size_t len, const char *section, const char *name, char *value, size_t cap);

bool leat_aws_config_has(const char *text, size_t len, const char *section);

/* A whole file, freed by the caller. NULL: there is none, it is too large, or out of memory. */
char *leat_aws_config_load(struct leat_mem *mem, const char *variable, const char *home_path, size_t *len);

#endif
