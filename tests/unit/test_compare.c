/* test_compare.c - equal runs are called equal, and 10 % is never called none */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/rng.h"
#include "xray/compare.h"

/* A simulated run: rates of epochs, and batch times, with the spread of epochs (beyond that of batches) and batches. */
struct model {
	double rate, epoch_spread, batch_spread;
	int epochs, batches; /* per epoch */
};

static double
normal(struct leat_rng *rng)
{
	float z;

	leat_rng_normals(rng, &z, 1);
	return (double)z;
}

enum { BUCKETS = 8 * 20 };

/* Upper bounds as those of a run's histogram. */
static double
bound(int i)
{
	return 0.01 * (8 + i % 8 + 1) * (double)(1 << i / 8);
}

static json_t *
histogram_json(const int *count)
{
	json_t *out = json_array();

	for (int i = 0; i < BUCKETS; i++)
		if (count[i])
			json_array_append_new(out, json_pack("[f, i]", bound(i), count[i]));
	return out;
}

static json_t *
simulate(const struct model *m, struct leat_rng *rng)
{
	double total = 0, batch = 32, wait = 0.3;
	int count[BUCKETS] = {0};
	json_t *epochs = json_array();

	for (int e = 0; e < m->epochs; e++) {
		double scale = 1e3 * batch / m->rate * exp(m->epoch_spread * normal(rng)) * (e == 0 ? 1.3 : 1),
		       seconds = 0;

		for (int i = 0; i < m->batches; i++) {
			double s = m->batch_spread, ms = scale * exp(s * normal(rng) - s * s / 2);
			int at = 0;

			while (at < BUCKETS - 1 && ms > bound(at))
				at++;
			count[at]++;
			seconds += ms / 1e3;
		}
		total += seconds;
		json_array_append_new(epochs,
		                      json_pack("{s:i, s:f, s:f, s:f}", "epoch", e, "samples", batch * m->batches,
		                                "seconds", seconds, "wait_share", wait + 0.01 * normal(rng)));
	}
	return json_pack("{s:f, s:f, s:o, s:{s:o}}", "samples_per_s", batch * m->batches * m->epochs / total,
	                 "wait_share", wait, "epochs", epochs, "batch_ms", "histogram", histogram_json(count));
}

/* How often two runs get each verdict. */
static void
tally(const struct model *a, const struct model *b, int pairs, int *verdicts)
{
	struct leat_rng rng;

	memset(verdicts, 0, 3 * sizeof *verdicts);
	for (int i = 0; i < pairs; i++) {
		struct leat_comparison c;
		json_t *x, *y;

		leat_rng_init(&rng, 7, (uint64_t)i, 0, 0);
		x = simulate(a, &rng);
		y = simulate(b, &rng);
		assert_int_equal(leat_compare(x, y, &c, NULL), LEAT_OK);
		verdicts[c.verdict]++;
		json_decref(x);
		json_decref(y);
	}
}

enum { PAIRS = 400 };

/* Many epochs, few epochs, one long epoch, one short and noisy epoch. */
static const struct model models[] = {
	{1000, 0.010, 0.3, 20, 50}, {1000, 0.005, 0.2, 5, 100},  {1000, 0.000, 0.3, 1, 3000},
	{1000, 0.000, 0.6, 2, 30},  {200000, 0.02, 1.0, 8, 200},
};
enum { MODELS = sizeof models / sizeof *models };

static void
equal_runs_do_not_differ(void **state)
{
	int verdicts[3];

	(void)state;
	for (int i = 0; i < MODELS; i++) {
		tally(&models[i], &models[i], PAIRS, verdicts);
		assert_true(verdicts[LEAT_VERDICT_DIFFERENT] <= PAIRS / 50);
	}
}

static void
ten_percent_are_never_called_none(void **state)
{
	int verdicts[3];

	(void)state;
	for (int i = 0; i < MODELS; i++)
		for (int slower = 0; slower < 2; slower++) {
			struct model other = models[i];

			other.rate *= slower ? 1 / 1.1 : 1.1;
			tally(&models[i], &other, PAIRS, verdicts);
			assert_true(verdicts[LEAT_VERDICT_SAME] <= PAIRS / 50);
		}
}

static void
good_runs_get_an_answer(void **state)
{
	int verdicts[3];
	struct model faster = models[0];

	(void)state;
	tally(&models[0], &models[0], PAIRS, verdicts);
	assert_true(verdicts[LEAT_VERDICT_SAME] >= PAIRS * 95 / 100);
	faster.rate *= 1.1;
	tally(&models[0], &faster, PAIRS, verdicts);
	assert_true(verdicts[LEAT_VERDICT_DIFFERENT] >= PAIRS * 95 / 100);
	tally(&models[2], &models[2], PAIRS, verdicts);
	assert_true(verdicts[LEAT_VERDICT_SAME] >= PAIRS * 95 / 100);
}

static void
short_and_noisy_runs_are_too_short_to_tell(void **state)
{
	int verdicts[3];

	(void)state;
	tally(&models[3], &models[3], PAIRS, verdicts);
	assert_true(verdicts[LEAT_VERDICT_UNCLEAR] >= PAIRS * 95 / 100);
}

/* ---- the words ---- */

static void
expect(const char *a, const char *b, enum leat_verdict verdict, const char *sentence)
{
	json_t *x = json_loads(a, 0, NULL), *y = json_loads(b, 0, NULL);
	struct leat_comparison c;

	assert_non_null(x);
	assert_non_null(y);
	assert_int_equal(leat_compare(x, y, &c, NULL), LEAT_OK);
	assert_string_equal(c.sentence, sentence);
	assert_int_equal(c.verdict, verdict);
	json_decref(x);
	json_decref(y);
}

#define BATCHES "\"batch_ms\": {\"histogram\": [[10, 0], [11, 4000]]}"

static void
the_sentence_says_what_was_found(void **state)
{
	(void)state;
	expect("{\"samples_per_s\": 1000, " BATCHES "}", "{\"samples_per_s\": 1010, " BATCHES "}", LEAT_VERDICT_SAME,
	       "No difference: 1000 and 1010 samples/s are within 5 % (noise: 0.3 %).");
	expect("{\"samples_per_s\": 1000, " BATCHES "}", "{\"samples_per_s\": 1100, " BATCHES "}",
	       LEAT_VERDICT_DIFFERENT, "B is 10 % faster than A: 1100 instead of 1000 samples/s (noise: 0.3 %).");
	expect("{\"samples_per_s\": 1000, \"wait_share\": 0.1, " BATCHES "}",
	       "{\"samples_per_s\": 500, \"wait_share\": 0.6, " BATCHES "}", LEAT_VERDICT_DIFFERENT,
	       "B is 50 % slower than A: 500 instead of 1000 samples/s (noise: 0.3 %); waited 10 % and 60 % of the "
	       "time.");
	expect("{\"samples_per_s\": 1000}", "{\"samples_per_s\": 1100}", LEAT_VERDICT_UNCLEAR,
	       "Too short to tell: 1000 and 1100 samples/s, with too few epochs and batches to know how much the runs "
	       "vary.");
	expect("{\"samples_per_s\": 1000}", "{\"samples_per_s\": 2000}", LEAT_VERDICT_DIFFERENT,
	       "B is 100 % faster than A: 2000 instead of 1000 samples/s (noise: 20.0 %).");
}

static void
runs_without_a_rate_are_refused(void **state)
{
	json_t *good = json_loads("{\"samples_per_s\": 1}", 0, NULL),
	       *bad = json_loads("{\"samples_per_s\": \"1\"}", 0, NULL);
	struct leat_comparison c;
	struct leat_err err = {0};

	(void)state;
	assert_int_equal(leat_compare(good, bad, &c, &err), LEAT_DATA);
	assert_non_null(strstr(err.text, "the second run has no rate"));
	json_object_set_new(bad, "samples_per_s", json_real(1e300));
	err = (struct leat_err){0};
	assert_int_equal(leat_compare(bad, good, &c, &err), LEAT_DATA);
	assert_non_null(strstr(err.text, "the first run has no rate"));
	json_decref(good);
	json_decref(bad);
}

static void
settings_that_differ_are_listed(void **state)
{
	json_t *a = json_loads(
		"{\"samples_per_s\": 1, \"threads\": 2, \"spec\": \"x\", \"tuning\": [{\"what\": \"window\", "
		"\"value\": 8}]}",
		0, NULL);
	json_t *b = json_loads(
		"{\"samples_per_s\": 1, \"threads\": 4, \"spec\": \"x\", \"tuning\": [{\"what\": \"window\", "
		"\"value\": 16}]}",
		0, NULL);
	struct leat_comparison c;
	json_t *out;

	(void)state;
	assert_int_equal(leat_compare(a, b, &c, NULL), LEAT_OK);
	out = leat_comparison_json(&c, a, b);
	assert_int_equal(json_array_size(json_object_get(out, "settings")), 2);
	json_decref(out);
	json_decref(a);
	json_decref(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_runs_do_not_differ),
		cmocka_unit_test(ten_percent_are_never_called_none),
		cmocka_unit_test(good_runs_get_an_answer),
		cmocka_unit_test(short_and_noisy_runs_are_too_short_to_tell),
		cmocka_unit_test(the_sentence_says_what_was_found),
		cmocka_unit_test(runs_without_a_rate_are_refused),
		cmocka_unit_test(settings_that_differ_are_listed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
