/* sampler_sink.c - takes samples in the rounds of a recorder's thread, twice a
 * second */
#include "trace/recorder.h"
#include "trace/sampler.h"

#include <string.h>

#include "base/clock.h"

enum {
	EVERY_NS = 500 * 1000 * 1000,
	LEAST_NS = 50 * 1000 * 1000, /* a few of the ticks in which the kernel counts CPU time */
};

struct sink {
	struct leat_recorder *recorder;
	struct leat_samplers *samplers;
	uint64_t due, now;
};

static void
record(void *arg, const char *track, double value)
{
	struct sink *sink = arg;

	leat_recorder_count(sink->recorder, track, sink->now, value);
}

/* The first sample comes with the first round, which may be the last: short runs have one as well. */
static void
sink_tick(void *arg, uint64_t now_ns, const struct leat_recorded *recorded)
{
	struct sink *sink = arg;

	(void)recorded;
	if (now_ns < sink->due)
		return;
	sink->now = now_ns;
	sink->due = sink->due + EVERY_NS > now_ns ? sink->due + EVERY_NS : now_ns + EVERY_NS;
	leat_samplers_take(sink->samplers, now_ns, record, sink);
}

static void
sink_free(void *arg)
{
	struct sink *sink = arg;

	leat_samplers_close(sink->samplers);
	leat_free(leat_recorder_mem(sink->recorder), sink);
}

static const struct leat_span_sink samplers_sink = {.tick = sink_tick, .free = sink_free};

enum leat_status
leat_samplers_attach(struct leat_recorder *recorder, struct leat_err *err)
{
	struct leat_mem *mem = leat_recorder_mem(recorder);
	struct sink *sink = leat_alloc(mem, sizeof(*sink));
	enum leat_status status;

	if (!sink)
		return leat_fail_mem(err, mem, sizeof(*sink), "the samplers");
	sink->recorder = recorder;
	status = leat_samplers_open(&sink->samplers, "", mem, err);
	if (status != LEAT_OK) {
		leat_free(mem, sink);
		return status;
	}
	sink->now = leat_now();
	sink->due = sink->now + LEAST_NS;
	leat_samplers_take(sink->samplers, sink->now, record, sink);
	leat_recorder_attach(recorder, &samplers_sink, sink);
	return LEAT_OK;
}

bool
leat_recorder_device_sized(struct leat_recorder *recorder, struct leat_device *device, size_t size)
{
	struct sink *sink = leat_recorder_sink(recorder, &samplers_sink);
	struct leat_device all = {0};
	bool known = sink && leat_samplers_device(sink->samplers, &all);

	memset(device, 0, size);
	memcpy(device, &all, size < sizeof all ? size : sizeof all);
	return known;
}
