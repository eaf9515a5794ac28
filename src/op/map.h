/* map.h - params of `map`, for the engine, which supplies the function */
#ifndef LEAT_OP_MAP_H
#define LEAT_OP_MAP_H

#include "op/op.h"

struct leat_map_params {
	const char *name, *version;
	bool random;
	/* Set by the engine: */
	const struct leat_function *function;
	unsigned number; /* of this map in the spec */
	uint64_t stream;
	struct leat_mem *mem;
	/* Set by infer: */
	struct leat_schema before;        /* the fields it gets */
	int takes, take[LEAT_MAX_FIELDS]; /* input fields given to the function */
	int give[LEAT_MAX_FIELDS];        /* output field of each field of function->gives */
	int outputs,
		kept[LEAT_MAX_FIELDS]; /* by output field: the input field it is, unchanged; -1: made by the function */
};

extern const struct leat_op leat_op_map;

/* The function of a call, for code that runs it elsewhere. */
const struct leat_function *leat_map_function(const struct leat_map_call *call);

/* For the pipeline's hash and the key of a cache: the version, or else the function's name; and the fields it gives. */
void leat_map_identity(const void *params, struct leat_str *out);

#endif
