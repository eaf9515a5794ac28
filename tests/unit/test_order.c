/* test_order.c - what other machines get of an action, and what they send back */
#include <jansson.h>

#include "support/runner.h"

static char *
written(struct trial *t, const struct leat_order *order)
{
	struct leat_str json;

	leat_str_init(&json, &t->mem, SIZE_MAX);
	leat_order_write(order, &json);
	return leat_str_take(&json);
}

/* Runs the command by way of JSON, as a node does. */
static void
run_sent(struct trial *t, const char *command)
{
	struct leat_order order;
	char *json;

	t->step.text = command;
	assert_int_equal(leat_order_make(&t->order, &t->action, 3, &t->err), LEAT_OK);
	json = written(t, &t->order);
	leat_order_free(&t->order);
	assert_int_equal(leat_order_read(&order, &t->mem, json, strlen(json), &t->err), LEAT_OK);
	if (leat_runner_run(&t->runner, &order, &t->running, &t->ran, &t->err) != LEAT_OK)
		fail_msg("%s", t->err.text);
	leat_order_free(&order);
	leat_free(&t->mem, json);
}

static void
test_an_order_that_was_sent_runs_as_it_does_here(void **state)
{
	static const char command[] = "{ cat $epochs; echo $epochs | sed 's,.*/,,'; echo \"$rate/$word/$seed/$cpus\"; "
				      "echo $OMP_NUM_THREADS; sed 's,[^\"]*/,,g' $LEAT_STEP; } > $out";
	struct trial *t = *state;
	struct leat_named params[] = {{"rate", "1e-3"}, {"word", "it's \"so\" \\ \xc3\xa9"}}, env = {"GREETING", "hi"};
	char *here;
	size_t len;

	trial_store_text(t, "epochs", "text\n");
	t->step.param = params;
	t->step.params = 2;
	t->step.env = &env;
	t->step.envs = 1;
	t->step.feed = "npy('$epochs')";
	t->cpus = 3;
	here = trial_out(t, command);
	leat_ran_end(&t->ran, &t->mem);
	leat_order_free(&t->order);
	run_sent(t, command);
	assert_int_equal(t->ran.outcome, LEAT_RAN);
	{
		unsigned char *there = temp_read(t->ran.out, &len);

		assert_int_equal(len, strlen(here));
		assert_memory_equal(there, here, len);
		free(there);
	}
	free(here);
}

static void
test_a_damaged_order_is_refused_at_every_byte(void **state)
{
	struct trial *t = *state;
	struct leat_order order;
	char *json;

	trial_store_text(t, "epochs", "text\n");
	t->step.text = "true";
	assert_int_equal(leat_order_make(&t->order, &t->action, 1, &t->err), LEAT_OK);
	json = written(t, &t->order);
	for (size_t len = 0; len < strlen(json); len++)
		assert_int_equal(leat_order_read(&order, &t->mem, json, len, NULL), LEAT_DATA);
	leat_free(&t->mem, json);
}

/* Names become parts of paths on another machine. */
static void
test_names_that_leave_the_sandbox_are_refused(void **state)
{
	static const char *const bad[][2] = {{"step", "\"../decode\""},
	                                     {"suffix", "\"/x\""},
	                                     {"params", "[[\"a=b\",\"c\"]]"},
	                                     {"checkpoint", "\"../../x\""},
	                                     {"code", "\"file 1 x\""},
	                                     {"cpus", "0"},
	                                     {"seed", "\"-1\""}};
	struct trial *t = *state;
	char *json;

	t->step.text = "true";
	assert_int_equal(leat_order_make(&t->order, &t->action, 1, &t->err), LEAT_OK);
	json = written(t, &t->order);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		json_t *root = json_loads(json, 0, NULL);
		struct leat_order order;
		char *text;

		json_object_set_new(root, bad[i][0], json_loads(bad[i][1], JSON_DECODE_ANY, NULL));
		text = json_dumps(root, 0);
		leat_err_clear(&t->err);
		assert_int_equal(leat_order_read(&order, &t->mem, text, strlen(text), &t->err), LEAT_DATA);
		assert_non_null(strstr(t->err.text, bad[i][0]));
		free(text);
		json_decref(root);
	}
	leat_free(&t->mem, json);
}

static void
test_a_result_comes_back_as_it_was_sent(void **state)
{
	struct trial *t = *state;
	struct leat_ran back;
	struct leat_str json;

	trial_run(t, "echo to the log; echo x > $out");
	assert_int_equal(leat_cas_take(t->cas, t->ran.out, &t->ran.output, &t->err), LEAT_OK);
	leat_str_init(&json, &t->mem, SIZE_MAX);
	leat_ran_write(&t->ran, &json);
	assert_int_equal(leat_ran_read(&back, &t->mem, leat_str_text(&json), json.len, &t->err), LEAT_OK);
	assert_int_equal(back.outcome, LEAT_RAN);
	assert_true(leat_content_equal(&back.output, &t->ran.output));
	assert_memory_equal(&back.log, &t->ran.log, sizeof(back.log));
	assert_string_equal(back.work, t->ran.work);
	leat_ran_end(&back, &t->mem);
	leat_str_free(&json);
}

static void
test_a_result_without_an_output_is_no_success(void **state)
{
	struct trial *t = *state;
	struct leat_ran back;
	struct leat_str json;

	trial_run(t, "echo x > $out");
	leat_str_init(&json, &t->mem, SIZE_MAX);
	leat_ran_write(&t->ran, &json); /* its output is not in the store */
	assert_int_equal(leat_ran_read(&back, &t->mem, leat_str_text(&json), json.len, &t->err), LEAT_DATA);
	leat_ran_end(&back, &t->mem);
	leat_str_free(&json);
}

static void
test_a_node_works_in_the_run_of_the_build(void **state)
{
	struct trial *t = *state;
	char folder[PATH_MAX], path[PATH_MAX];
	struct leat_cas *node;
	struct leat_digest digest;

	snprintf(folder, sizeof(folder), "%s/.leat", t->temp.folder);
	assert_int_equal(leat_cas_open(&node, &t->mem, folder, LEAT_CAS_NODE, &t->err), LEAT_OK);
	assert_int_equal(leat_cas_join(node, "20000101T000000-1", &t->err), LEAT_DATA);
	leat_err_clear(&t->err);
	assert_int_equal(leat_cas_join(node, "../..", &t->err), LEAT_INVALID);
	leat_err_clear(&t->err);
	assert_int_equal(leat_cas_join(node, leat_cas_run(t->cas), &t->err), LEAT_OK);
	assert_int_equal(leat_cas_put_bytes(node, "abc", 3, &digest, &t->err), LEAT_OK);
	leat_cas_temp_path(node, path);
	*strrchr(path, '/') = '\0';
	assert_int_equal(access(path, F_OK), 0);
	leat_cas_close(node);
	assert_int_not_equal(access(path, F_OK), 0);
	leat_cas_blob_path(t->cas, &digest, path);
	assert_int_equal(access(path, F_OK), 0);
	assert_non_null(leat_cas_run(t->cas)); /* which goes on */
}

static void
test_no_memory_is_an_error(void **state)
{
	struct trial *t = *state;
	enum leat_status status = LEAT_NOMEM;
	struct leat_order order;
	char *json;
	long n = 0;

	trial_store_text(t, "epochs", "x");
	t->step.text = "true";
	assert_int_equal(leat_order_make(&t->order, &t->action, 1, &t->err), LEAT_OK);
	json = written(t, &t->order);
	for (; status != LEAT_OK && n < 1000; n++) {
		atomic_store(&t->mem.fail_after, n);
		status = leat_order_read(&order, &t->mem, json, strlen(json), NULL);
		atomic_store(&t->mem.fail_after, -1);
	}
	assert_true(n > 1 && n < 1000);
	leat_order_free(&order);
	leat_free(&t->mem, json);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, trial_open, trial_close)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_an_order_that_was_sent_runs_as_it_does_here),
		TEST(test_a_damaged_order_is_refused_at_every_byte),
		TEST(test_names_that_leave_the_sandbox_are_refused),
		TEST(test_a_result_comes_back_as_it_was_sent),
		TEST(test_a_result_without_an_output_is_no_success),
		TEST(test_a_node_works_in_the_run_of_the_build),
		TEST(test_no_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
