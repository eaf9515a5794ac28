/* contents.h - a hash of all bytes of a feed's data, for fingerprint=full */
#ifndef LEAT_FEED_CONTENTS_H
#define LEAT_FEED_CONTENTS_H

#include "feed/feed.h"

/* Reads all files on `threads` threads, unless `hex` is already filled. Ends with LEAT_CANCELLED when leat_cancel is
 * called meanwhile. Consumer thread. */
enum leat_status leat_contents(const struct leat_feed *feed, char hex[LEAT_SHA256_HEX], struct leat_err *err);

#endif
