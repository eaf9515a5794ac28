/* test_features.c - the text of features, splits, exact sums and saved states; python/tests/test_features.py has values
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "table/features.h"

static struct leat_mem mem;
static struct leat_err err;

static int
setup(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	assert_int_equal(mem.used, 0);
	return 0;
}

/* ---- sums ---- */

static double
sum_of(const double *number, size_t count)
{
	double copy[64];

	memcpy(copy, number, count * sizeof(*copy));
	return leat_exact_sum(copy, count);
}

#define SUM(...) sum_of((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static void
sums_are_rounded_once(void **state)
{
	(void)state;
	assert_true(SUM(1e100, 1, -1e100, 1e-100) == 1);
	assert_true(SUM(0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0) == 5.5);
	assert_true(SUM(0x1p53, 1) == 0x1p53);               /* half way: to even */
	assert_true(SUM(0x1p53, 1, 0x1p-100) == 0x1p53 + 2); /* above half way */
	assert_true(SUM(0x1p-100, 0x1p53, 1) == 0x1p53 + 2);
	assert_true(SUM(0x1p53 + 2, 1, -0x1p-100) == 0x1p53 + 2); /* below half way */
	assert_true(SUM(-0x1p53, -1, -0x1p-100) == -0x1p53 - 2);
	assert_true(leat_exact_sum(NULL, 0) == 0);
}

static void
sums_do_not_depend_on_order(void **state)
{
	double number[50], first = 0;
	uint64_t random = 1;

	(void)state;
	for (int round = 0; round < 200; round++) {
		for (int i = 0; i < 50; i++) {
			random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
			/* the same numbers in each round, in another order */
			number[(i * 7 + round * 13) % 50] =
				ldexp((double)((i * 7919) % 1000 - 500), (i * 31) % 200 - 100);
		}
		if (!round)
			first = sum_of(number, 50);
		assert_true(sum_of(number, 50) == first);
	}
}

/* ---- text ---- */

/* The normal form, or the error. */
static const char *
normal(const char *columns, const char *split)
{
	static char text[2000];
	struct leat_features *f;
	struct leat_str out;

	leat_err_clear(&err);
	if (leat_features_parse(&f, &mem, &(struct leat_features_text){columns, split, NULL}, &err) != LEAT_OK) {
		assert_null(f);
		snprintf(text, sizeof(text), "%.*s", (int)strcspn(err.text, "\n"), err.text);
		return text;
	}
	leat_str_init(&out, &mem, sizeof(text) - 1);
	leat_features_print(f, &out);
	if (*split) {
		leat_str_add(&out, " / ");
		leat_split_print(&f->split, &out);
	}
	assert_false(out.failed);
	strcpy(text, leat_str_text(&out));
	leat_str_free(&out);
	leat_features_close(f);
	return text;
}

static void
texts_have_a_normal_form(void **state)
{
	static const char amount[] = "'amount': clip(low=[p01], high=[99.5]) | log1p | standardize";
	char again[2000];

	(void)state;
	assert_string_equal(normal("amount:clip( p01,high = 99.50 )|log1p # why\n| standardize ;", ""), amount);
	assert_string_equal(normal(amount, ""), amount);
	assert_string_equal(normal("'a b\\'': keep; c: cross(x, 'y z', buckets=10)", ""),
	                    "'a b\\'': keep; 'c': cross(columns=['x', 'y z'], buckets=10)");
	assert_string_equal(normal("x: impute('p\"q', indicator=true)", ""),
	                    "'x': impute(value=['p\"q'], indicator=true)");
	assert_string_equal(normal("x: keep", "user, day: train 80%, valid 10.5%, test 9.5%"),
	                    "'x': keep / 'user', 'day': 'train' 80%, 'valid' 10.5%, 'test' 9.5%");
	assert_string_equal(normal("x: keep", "ts: train before '2024-05-01', test rest"),
	                    "'x': keep / 'ts': 'train' before '2024-05-01', 'test' rest");
	assert_string_equal(normal("x: rolling(std, 1.5h, by=u, order=ts)", ""),
	                    "'x': rolling(what=std, window=[1.5h], by=['u'], order=['ts'], current=false)");
	strcpy(again, normal("x: bucketize(0.1, 1e300, p50)", ""));
	assert_string_equal(normal(again, ""), again);
}

static void
mistakes_are_explained(void **state)
{
	static const struct {
		const char *columns, *split, *error;
	} cases[] = {
		{"", "", "there are no features; name at least one, such as 'amount: log1p'"},
		{"x: standardise", "", "there is no transform 'standardise', did you mean 'standardize'?"},
		{"x log1p", "", "expected ':', not 'log1p'"},
		{"x: log1p y: log1p", "", "expected '|' or ';', not 'y'"},
		{"x: 3", "", "expected the name of a transform, not '3'"},
		{"x: log1p; X: log1p", "", "there are two features called 'X'"},
		{"Split: keep", "", "a feature cannot be called 'split': that column says which part a row belongs to"},
		{"x: log1p | column(y)", "", "'column' can only be the first transform of a feature"},
		{"x: cyclic(24) | log1p", "", "nothing can follow 'cyclic'"},
		{"x: clip", "", "'clip' needs a bound, such as clip(p01, p99) or clip(low=0)"},
		{"x: clip(p101)", "", "'clip' needs a number or a quantile such as p99 as its lower bound"},
		{"x: clip(1, [2, 3])", "", "'clip' needs a number or a quantile such as p99 as its upper bound"},
		{"x: clip(p99, p01)", "", "the lower bound of 'clip' is above the upper one"},
		{"x: bucketize", "",
	         "'bucketize' needs either edges or quantiles, such as bucketize(0, 10, 100) or "
	         "bucketize(quantiles=10)"},
		{"x: bucketize(mean)", "", "an edge of 'bucketize' is a number or a quantile such as p50, not 'mean'"},
		{"x: cyclic(0)", "", "'cyclic' needs a period above 0, such as cyclic(24)"},
		{"x: cross(a, buckets=2)", "", "'cross' takes 2 to 16 columns, not 1"},
		{"x: lag(0, order=ts)", "", "option 'n' of 'lag' must be between 1 and 1000000000, not 0"},
		{"x: lag(1, by=u)", "",
	         "'lag' needs the option 'order': columns that say how the rows of a group follow each other"},
		{"x: lag(1, order=[])", "", "'lag' needs order=COLUMN, such as a time"},
		{"x: rolling(mean, 7y, order=ts)", "",
	         "the time of 'rolling' is a number with s, m, h, d or w, such as 7d, of at most 3000 years"},
		{"x: rolling(mean, 1.5, order=ts)", "",
	         "'rolling' needs a number of rows or a time, such as rolling(mean, 10, ...) or rolling(mean, 7d, "
	         "...)"},
		{"x: rolling(mean, 7d, order=[a, b])", "", "'rolling' over a time needs one column in 'order', not 2"},
		{"x: rolling(median, 7d, order=a)", "",
	         "option 'what' of 'rolling' cannot be 'median', did you mean 'mean'?"},
		{"x: target(y, smoothing=-1)", "",
	         "the smoothing of 'target' is a number of rows, 0 or more, such as 20"},
		{"x: vocab(min_count=0)", "", "option 'min_count' of 'vocab' must be at least 1, not 0"},
		{"x: keep", "user", "expected ',' or ':', but the spec ends"},
		{"x: keep", "user: train 80%", "the parts of the split are 80% together, not 100%"},
		{"x: keep", "user: a 100%", "a split needs a part called 'train', on which features are fitted"},
		{"x: keep", "user: train 100%, rest rest", "the split leaves nothing for 'rest'"},
		{"x: keep", "user: train 50", "a share of rows is a percentage, such as 80%"},
		{"x: keep", "user: train 0%, test rest",
	         "a share of rows is between 0.0001% and 100%, with at most 4 decimals"},
		{"x: keep", "user: train 50%, train 50%", "the split has two parts called 'train'"},
		{"x: keep", "ts: train before '2024-01-01'", "the last part of a split by time is 'rest'"},
		{"x: keep", "ts: train before '2024-01-01', b 50%, c rest",
	         "a split is either by percentages or by times"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(normal(cases[i].columns, cases[i].split), cases[i].error);
}

static void
splits_compare_md5_with_shares(void **state)
{
	struct leat_features *f;
	struct leat_str sql;

	(void)state;
	assert_int_equal(
		leat_features_parse(
			&f, &mem,
			&(struct leat_features_text){"x: keep", "'u\"ser': train 10%, b'x 40%, test rest", NULL}, &err),
		LEAT_SPEC);
	leat_err_clear(&err);
	assert_int_equal(leat_features_parse(&f, &mem,
	                                     &(struct leat_features_text){
						     "x: keep", "'u\"ser': train 10%, 'b\\'x' 40%, test rest", NULL},
	                                     &err),
	                 LEAT_OK);
	leat_str_init(&sql, &mem, SIZE_MAX);
	leat_split_sql(&f->split, &sql);
	assert_string_equal(leat_str_text(&sql), "CASE WHEN md5(coalesce(CAST(t.\"u\"\"ser\" AS VARCHAR), '')) < "
	                                         "'19999999999999999999999999999999' THEN 'train' WHEN "
	                                         "md5(coalesce(CAST(t.\"u\"\"ser\" AS VARCHAR), '')) < "
	                                         "'80000000000000000000000000000000' THEN 'b''x' ELSE 'test' END");
	leat_str_free(&sql);
	leat_features_close(f);
}

/* ---- states ---- */

/* Such as a fit leaves them. Names have quotes. */
static const char good[] =
	"{\"leat_features\": 1, \"duckdb\": \"1.5.6\",\n"
	" \"columns\": \"'a\\\"b': clip(low=[p01], high=[]) | standardize; 'w': vocab(min_count=1, max_size=1000000); "
	"'y': keep\",\n"
	" \"split\": \"'w': 'train' 80%, 'test' 20%\",\n"
	" \"inputs\": [\n"
	"  {\"name\": \"a\\\"b\", \"type\": \"DOUBLE\", \"needed\": true},\n"
	"  {\"name\": \"w\", \"type\": \"VARCHAR\", \"needed\": true},\n"
	"  {\"name\": \"y\", \"type\": \"DECIMAL(10,2)\", \"needed\": false}],\n"
	" \"fitted\": [\n"
	"  {\"feature\": \"a\\\"b\", \"transform\": \"clip\", \"version\": 1, \"values\": [-1.5]},\n"
	"  {\"feature\": \"a\\\"b\", \"transform\": \"standardize\", \"version\": 1, \"values\": {\"mean\": "
	"0.10000000000000001, \"stddev\": 2.0}},\n"
	"  {\"feature\": \"w\", \"transform\": \"vocab\", \"version\": 1, \"dictionary\": \"dictionary_1_0\", "
	"\"entries\": 3}],\n"
	" \"outputs\": [\n"
	"  {\"name\": \"a\\\"b\"},\n"
	"  {\"name\": \"w\"},\n"
	"  {\"name\": \"y\", \"keeps\": \"y\"}],\n"
	" \"layers\": [\n"
	"  \"nullif(CAST(t.\\\"a\\\"\\\"b\\\" AS DOUBLE), CAST('nan' AS DOUBLE)) AS v0, CAST(t.\\\"w\\\" AS VARCHAR) "
	"AS "
	"v1, CAST(t.\\\"y\\\" AS DECIMAL(10,2)) AS v2\",\n"
	"  \"CASE WHEN v0 < -1.5e0 THEN -1.5e0 ELSE v0 END AS v0, CASE WHEN v1 IS NULL THEN CAST(1 AS BIGINT) ELSE "
	"coalesce(CAST(enum_code(TRY_CAST(v1 AS \\\"dictionary_1_0\\\")) AS BIGINT) + 3, 2) END AS v1, v2 AS v2\",\n"
	"  \"(v0 - 0.10000000000000001e0) / 2e0 AS v0, v1, v2\",\n"
	"  \"v0 AS \\\"a\\\"\\\"b\\\", v1 AS \\\"w\\\", v2 AS \\\"y\\\"\"]}\n";

static enum leat_status
load(const char *json)
{
	struct leat_features *f;
	enum leat_status status;

	leat_err_clear(&err);
	status = leat_features_load(&f, &mem, json, strlen(json), &err);
	assert_true((status == LEAT_OK) == (f != NULL));
	leat_features_close(f);
	return status;
}

static void
a_state_is_saved_as_it_was_loaded(void **state)
{
	struct leat_features *f;
	struct leat_str json, sql;

	(void)state;
	if (leat_features_load(&f, &mem, good, strlen(good), &err) != LEAT_OK)
		fail_msg("%s", err.text);
	leat_str_init(&json, &mem, SIZE_MAX);
	leat_features_save(f, &json);
	assert_string_equal(leat_str_text(&json), good);
	leat_str_init(&sql, &mem, SIZE_MAX);
	leat_features_select(f, "new", false, &sql);
	assert_memory_equal(leat_str_text(&sql), "SELECT v0 AS ", 13);
	assert_non_null(strstr(leat_str_text(&sql), " FROM new AS t)))"));
	leat_str_free(&sql);
	leat_str_free(&json);
	leat_features_close(f);
}

/* Replaces the first `was` in the good state. */
static const char *
edited(const char *was, const char *now)
{
	static char text[8000];
	const char *at = strstr(good, was);

	assert_non_null(at);
	snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - good), good, now, at + strlen(was));
	return text;
}

static void
a_hostile_state_is_refused(void **state)
{
	static const struct {
		const char *was, *now;
	} edits[] = {
		{"\"leat_features\": 1", "\"leat_features\": 2"},
		{"\"leat_features\": 1", "\"leat_features\": \"1\""},
		{"\"duckdb\": \"1.5.6\"",
	         "\"duckdb\": \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\""},
		{"\"DOUBLE\", \"needed\"", "\"DOUBLE); DROP TABLE x; --\", \"needed\""},
		{"\"DECIMAL(10,2)\"", "\"DECIMAL(10,99)\""},
		{"\"DECIMAL(10,2)\"", "\"DECIMAL(10,02)\""},
		{"\"VARCHAR\", \"needed\"", "\"\", \"needed\""}, /* vocab cannot take a type without a name */
		{"\"values\": [-1.5]", "\"values\": [-1.5, 2]"},
		{"\"values\": [-1.5]", "\"values\": []"},
		{"\"values\": [-1.5]", "\"values\": [\"-1.5\"]"},
		{"\"values\": [-1.5]", "\"values\": [-1.25]"}, /* the SQL is of another */
		{"\"mean\"", "\"median\""},
		{"\"stddev\": 2.0", "\"stddev\": 2.0, \"more\": 1"},
		{"\"version\": 1", "\"version\": 2"},
		{"\"entries\": 3", "\"entries\": -3"},
		{"\"transform\": \"clip\"", "\"transform\": \"minmax\""},
		{"standardize; ", "standardize; 'z': keep; "},
		{"v0 AS \\\"a", "(SELECT max(x) FROM read_text('/etc/passwd')) AS \\\"a"},
		{"'w': vocab", "'w': vacob"},
		{"\"inputs\": [", "\"inputs\": [1, "},
		{"\"layers\"", "\"layer\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(edits) / sizeof(*edits); i++) {
		if (load(edited(edits[i].was, edits[i].now)) != LEAT_DATA)
			fail_msg("%s: %s", edits[i].now, err.text);
		assert_true(err.text[0]);
	}
	assert_int_equal(load(""), LEAT_DATA);
	assert_int_equal(load("[]"), LEAT_DATA);
	assert_int_equal(load("{\"leat_features\": 1}"), LEAT_DATA);
	assert_int_equal(load("{\"leat_features\": 1, \"leat_features\": 1}"), LEAT_DATA);
}

static void
running_out_of_memory_leaves_nothing_behind(void **state)
{
	enum leat_status status = LEAT_NOMEM;

	(void)state;
	for (long n = 0; status != LEAT_OK; n++) {
		assert_true(n < 10000);
		atomic_store(&mem.fail_after, n);
		status = load(good);
		if (status != LEAT_OK && status != LEAT_NOMEM)
			fail_msg("after %ld: %s", n, err.text);
		assert_int_equal(mem.used, 0);
	}
	atomic_store(&mem.fail_after, -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sums_are_rounded_once, setup, teardown),
		cmocka_unit_test_setup_teardown(sums_do_not_depend_on_order, setup, teardown),
		cmocka_unit_test_setup_teardown(texts_have_a_normal_form, setup, teardown),
		cmocka_unit_test_setup_teardown(mistakes_are_explained, setup, teardown),
		cmocka_unit_test_setup_teardown(splits_compare_md5_with_shares, setup, teardown),
		cmocka_unit_test_setup_teardown(a_state_is_saved_as_it_was_loaded, setup, teardown),
		cmocka_unit_test_setup_teardown(a_hostile_state_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(running_out_of_memory_leaves_nothing_behind, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
