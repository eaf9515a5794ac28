/* resampling.h - options shared by ops that resample images */
#ifndef LEAT_OP_RESAMPLING_H
#define LEAT_OP_RESAMPLING_H

#include "base/opt.h"
#include "image/image.h"

/* For a params struct T whose member `how` is a struct leat_resampling. */
#define LEAT_RESAMPLING_OPTIONS(T, how)                                                                                \
	{"method",                                                                                                     \
	 LEAT_OPT_ENUM,                                                                                                \
	 offsetof(T, how.method),                                                                                      \
	 "bilinear",                                                                                                   \
	 0,                                                                                                            \
	 0,                                                                                                            \
	 "bilinear|nearest|bicubic|lanczos|area",                                                                      \
	 "interpolation method",                                                                                       \
	 0},                                                                                                           \
		{"mode",                                                                                               \
	         LEAT_OPT_ENUM,                                                                                        \
	         offsetof(T, how.mode),                                                                                \
	         "tf",                                                                                                 \
	         0,                                                                                                    \
	         0,                                                                                                    \
	         "tf|torch",                                                                                           \
	         "match tf.image.resize (output is float32, except for nearest) or torchvision (type unchanged)",      \
	         0},                                                                                                   \
	{                                                                                                              \
		"antialias", LEAT_OPT_BOOL, offsetof(T, how.antialias), "false", 0, 1, NULL,                           \
			"filter when downscaling, to avoid aliasing; no effect on nearest and area", 0                 \
	}

/* For `infer`: only nearest works on uint16. */
static inline enum leat_status
leat_check_resampled(const struct leat_resampling *how, const struct leat_field *field, struct leat_err *err)
{
	if (field->dtype == LEAT_U16 && how->method != LEAT_RESIZE_NEAREST)
		return leat_fail(
			err, LEAT_SPEC,
			"on uint16 only method=nearest is supported; for other methods, put cast(float32) before");
	return LEAT_OK;
}

#endif
