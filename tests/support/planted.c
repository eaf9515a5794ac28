/* planted.c - see planted.h */
#include "support/planted.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <jansson.h>
#include <string.h>
#include <time.h>

#include "support/store_mem.h"
#include "support/trace.h"

enum { TOKENS = 64 };

struct leat_xray planted;

const struct leat_field planted_field = {.name = "tokens", .dtype = LEAT_I32, .ndim = 1, .shape = {TOKENS}};

int
planted_setup(void **state)
{
	static uint16_t tokens[PLANTED_SAMPLES * TOKENS];

	(void)state;
	store_mem_reset();
	store_mem_put("mem://tokens", tokens, sizeof tokens);
	return 0;
}

int
planted_teardown(void **state)
{
	(void)state;
	leat_xray_close(&planted);
	store_mem_reset();
	return 0;
}

/* ---- functions ---- */

enum leat_status
planted_copy(void *arg, const struct leat_map_call *call, struct leat_err *err)
{
	void *out = leat_map_output(call, 0, planted_field.shape, err);

	(void)arg;
	if (!out)
		return err->status;
	memcpy(out, call->value[0].data, TOKENS * sizeof(int32_t));
	return LEAT_OK;
}

enum leat_status
planted_wait(void *arg, const struct leat_map_call *call, struct leat_err *err)
{
	struct timespec t = {.tv_nsec = *(const unsigned *)arg * 1000L};

	nanosleep(&t, NULL);
	return planted_copy(NULL, call, err);
}

enum leat_status
planted_compute(void *arg, const struct leat_map_call *call, struct leat_err *err)
{
	const long ns = *(const unsigned *)arg * 1000L;
	struct timespec begin, now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < ns);
	return planted_copy(NULL, call, err);
}

/* ---- running ---- */

struct leat_options
planted_options(struct leat_function *function,
                enum leat_status (*run)(void *, const struct leat_map_call *, struct leat_err *), unsigned *us)
{
	struct leat_options o;

	trace_options(&o);
	o.threads = 2;
	*function =
		(struct leat_function){.name = "f", .run = run, .arg = us, .gives = &planted_field, .give_count = 1};
	o.functions = function;
	o.function_count = 1;
	return o;
}

void
planted_examine(const char *spec, const struct leat_options *options, double step_ms, double seconds)
{
	struct leat_xray_options how;
	struct leat_err err;

	leat_xray_options_init(&how);
	how.step_ms = step_ms;
	how.seconds = seconds;
	leat_xray_close(&planted);
	if (leat_xray_open(&planted, spec, options, &how, &err) != LEAT_OK)
		fail_msg("%s: %s", spec, err.text);
}

/* ---- expecting ---- */

const struct leat_remedy *
planted_helping(enum leat_remedy_kind kind)
{
	for (int i = 0; i < planted.remedies; i++)
		if (planted.remedy[i].kind == kind && planted.remedy[i].helps)
			return &planted.remedy[i];
	return NULL;
}

void
planted_expect_limit(const char *limit)
{
	if (strcmp(planted.verdict.limit, limit) != 0)
		fail_msg("the limit is %s, not %s: %s", planted.verdict.limit, limit, planted.verdict.sentence);
}

void
planted_expect_limit_of_run(const char *limit)
{
	json_t *run = json_loads(planted.run, 0, NULL);

	assert_non_null(run);
	assert_string_equal(json_string_value(json_object_get(run, "limit")), limit);
	json_decref(run);
}

void
planted_expect_help(enum leat_remedy_kind kind)
{
	if (!planted_helping(kind))
		fail_msg("%s should help: %s", leat_remedy_name(kind), planted.verdict.sentence);
}

void
planted_expect_no_advice(void)
{
	for (int i = 0; i < planted.remedies; i++)
		if (planted.remedy[i].helps)
			fail_msg("useless advice: %s (%s)", planted.remedy[i].what, planted.verdict.sentence);
}
