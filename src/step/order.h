/* order.h - an action as whoever runs it needs it: what its sandbox holds, and nothing of the project
 *
 * A build makes the order of an action; its own runner takes it as it is. As JSON it goes to other machines, which
 * then need neither leat.yaml nor the plan, only a store that has the contents.
 *
 * Threads: read-only once it is made. */
#ifndef LEAT_STEP_ORDER_H
#define LEAT_STEP_ORDER_H

#include "step/action.h"
#include "step/project_text.h"

struct leat_order_input {
	const char *name;
	const char *suffix; /* of its link in the sandbox: ".npy"; "" if none */
	struct leat_content content;
	const char *path; /* absolute: a file or folder of the user, which stays where it is; NULL: in the store */
};

struct leat_order {
	struct leat_mem *mem;
	struct leat_project_text text; /* what is not borrowed from the action */
	const char *step, *suffix, *command;
	const char *feed; /* the spec as leat.yaml has it; "" if none */
	const struct leat_named *param, *slice, *env;
	size_t params, slices, envs;
	const struct leat_order_input *input;
	size_t inputs;
	/* Of inputs that come from several slices: a JSON object of lists, {"decode": [{"entry": "3,7.npy", "slice":
	 * {"subject": "3"}}]}; an entry "" is the input itself. */
	const char *input_slices;
	bool makes_table; /* whose sketch is kept (table/sketch.h) */
	/* Of the last run of this step and slice, for that sketch and nothing else; NULL: none. Set by the caller. */
	const char *last_id, *last_profile;
	bool has_code; /* Python tells what it imports */
	struct leat_content code;
	const char *snapshot; /* folder with the code; "": none; NULL: the view of `code` */
	uint64_t seed;
	uint64_t memory_bytes; /* 0: no limit */
	double timeout_s;      /* 0: none */
	unsigned cpus;
	bool resume;
	const char *checkpoint; /* name of its folder, if it resumes */
};

/* `cpus`: how many it gets. Borrows from the action, which must outlive it. */
enum leat_status leat_order_make(struct leat_order *order, const struct leat_action *action, unsigned cpus,
                                 struct leat_err *err);
void leat_order_free(struct leat_order *order); /* accepts a zeroed one */

/* ---- order_json.c ---- */

void leat_order_write(const struct leat_order *order, struct leat_str *json);
/* The inverse, for hostile text. LEAT_DATA. */
enum leat_status leat_order_read(struct leat_order *order, struct leat_mem *mem, const char *json, size_t len,
                                 struct leat_err *err);

#endif
