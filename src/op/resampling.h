/* resampling.h - the options of ops that bring images to another size: how pixels are made */
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
	 "how pixels are made",                                                                                        \
	 0},                                                                                                           \
		{"mode",                                                                                               \
	         LEAT_OPT_ENUM,                                                                                        \
	         offsetof(T, how.mode),                                                                                \
	         "tf",                                                                                                 \
	         0,                                                                                                    \
	         0,                                                                                                    \
	         "tf|torch",                                                                                           \
	         "whose pixels: tf.image.resize's, float32 but for nearest, or torchvision's, which keep their type",  \
	         0},                                                                                                   \
	{                                                                                                              \
		"antialias", LEAT_OPT_BOOL, offsetof(T, how.antialias), "false", 0, 1, NULL,                           \
			"true: each pixel of a smaller image is made of all that it covers; without effect on "        \
			"nearest and area",                                                                            \
			0                                                                                              \
	}

#endif
