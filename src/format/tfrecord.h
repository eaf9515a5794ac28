/* tfrecord.h - parameters of the tfrecord source */
#ifndef LEAT_FORMAT_TFRECORD_H
#define LEAT_FORMAT_TFRECORD_H

#include "base/opt.h"

struct leat_tfrecord_params {
	struct leat_strings patterns;
	bool crc;
};

#endif
