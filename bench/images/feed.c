/* feed.c - Leat as a contender: takes batches of a spec, see turns.h
 *
 *	images_feed SPEC THREADS WARM_UP */
#include <err.h>
#include <stdlib.h>

#include "leat.h"
#include "turns.h"

static uint64_t
take(void *arg, uint64_t images)
{
	struct leat_feed *feed = arg;
	struct leat_batch *batch;
	struct leat_err why;
	uint64_t taken = 0;

	while (taken < images) {
		enum leat_status status = leat_next(feed, &batch, &why);

		if (status == LEAT_END)
			continue;
		if (status != LEAT_OK)
			errx(1, "%s", why.text);
		taken += (uint64_t)leat_batch_count(batch);
		leat_release(batch);
	}
	return taken;
}

int
main(int argc, char **argv)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_err why;

	if (argc != 4)
		errx(2, "usage: images_feed SPEC THREADS WARM_UP");
	leat_options_init(&options);
	options.threads = (unsigned)atoi(argv[2]);
	options.seed = 1;
	if (leat_open(argv[1], &options, &feed, &why) != LEAT_OK)
		errx(1, "%s", why.text);
	turns_run(strtoull(argv[3], NULL, 10), take, feed);
	leat_close(feed);
	return 0;
}
