/* tfrecord.h - the params of the source of TFRecord files */
#ifndef LEAT_FORMAT_TFRECORD_H
#define LEAT_FORMAT_TFRECORD_H

#include "base/opt.h"

struct leat_tfrecord_params {
	struct leat_strings patterns;
	bool crc;
};

#endif
