/* stage_table.h - what each stage of a run did, as a table, with the sentence that says what limits */
#ifndef LEAT_CLI_STAGE_TABLE_H
#define LEAT_CLI_STAGE_TABLE_H

#include "base/err.h"
#include "trace/figures.h"

/* One row for each stage that took some time. The step has one only if there is a step. */
enum leat_status leat_print_stages(const struct leat_stage_list *list, const struct leat_limit *limit,
                                   struct leat_mem *mem, struct leat_err *err);

#endif
