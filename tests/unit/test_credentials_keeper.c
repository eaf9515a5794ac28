/* test_credentials_keeper.c - credentials that expire are replaced in time, by a separate thread
 *
 * They come from a credential_process that waits until the test answers, through a named pipe for
 * each process that asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "store/credentials_keeper.h"
#include "support/temp.h"

static struct temp temp;
static struct leat_storage storage;
static struct leat_err err;
static char answers[256], log_name[256];

static void
make_pipe(void)
{
	char name[32];

	snprintf(name, sizeof(name), "answers-%d", (int)getpid());
	snprintf(answers, sizeof(answers), "%s", temp_path(&temp, name));
	assert_int_equal(mkfifo(answers, 0600), 0);
}

static int
begin(void **state)
{
	char text[1024];

	(void)state;
	temp_make(&temp);
	mkdir(temp_path(&temp, ".aws"), 0700);
	setenv("HOME", temp.folder, 1);
	make_pipe();
	snprintf(log_name, sizeof(log_name), "%s", temp_path(&temp, "log"));
	snprintf(text, sizeof(text), "[default]\ncredential_process = echo >>%s; cat %s/answers-$PPID\n", log_name,
	         temp.folder);
	temp_write(&temp, ".aws/config", text, strlen(text));
	leat_storage_init(&storage);
	leat_err_clear(&err);
	return 0;
}

static int
end(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

/* How often the process was started. */
static int
starts(void)
{
	struct stat st;

	return stat(log_name, &st) == 0 ? (int)st.st_size : 0;
}

/* Waits for a process, and is what it prints. */
static void
answer(const char *key_id, int seconds)
{
	time_t expires = time(NULL) + seconds;
	FILE *out = fopen(answers, "w");
	char text[64];

	assert_non_null(out);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", gmtime(&expires));
	fprintf(out, "{\"Version\": 1, \"AccessKeyId\": \"%s\", \"SecretAccessKey\": \"s\", \"Expiration\": \"%s\"}",
	        key_id, text);
	fclose(out);
}

static struct leat_keeper *
open_keeper(void)
{
	struct leat_keeper *keeper;

	assert_int_equal(leat_keeper_open(&keeper, &storage, &err), LEAT_OK);
	return keeper;
}

static enum leat_status
try(struct leat_keeper *keeper, char key_id[LEAT_KEY_ID], unsigned *version)
{
	const struct leat_credentials *credentials;
	enum leat_status status;

	leat_err_clear(&err);
	status = leat_keeper_lock(keeper, &credentials, version, &err);
	if (status != LEAT_OK)
		return status;
	strcpy(key_id, credentials->key_id);
	leat_keeper_unlock(keeper);
	return status;
}

static void
gets(struct leat_keeper *keeper, const char *key_id, unsigned version)
{
	char got[LEAT_KEY_ID];
	unsigned got_version;

	while (try(keeper, got, &got_version) == LEAT_AGAIN)
		sched_yield();
	assert_string_equal(got, key_id);
	assert_int_equal(got_version, version);
}

static void
requests_go_on_while_new_ones_are_found_and_wait_when_the_old_have_expired(void **state)
{
	struct leat_keeper *keeper = open_keeper(), *other = open_keeper();
	char got[LEAT_KEY_ID];
	unsigned version;

	(void)state;
	assert_ptr_equal(keeper, other);
	assert_int_equal(try(keeper, got, &version), LEAT_AGAIN);
	answer("one", 3);
	assert_int_equal(leat_keeper_wait(keeper, NULL, &err), LEAT_OK);
	/* Nobody answers the second process yet, and nobody waits for it. */
	while (starts() < 2)
		try(keeper, got, &version);
	while (try(keeper, got, &version) == LEAT_OK)
		assert_string_equal(got, "one");
	assert_int_equal(err.status, LEAT_AGAIN);
	assert_int_equal(leat_keeper_wait(keeper, NULL, &err), LEAT_OK); /* opening another feed does not wait */
	answer("two", 3600);
	gets(keeper, "two", 2);
	gets(other, "two", 2);
	assert_int_equal(starts(), 2);
	leat_keeper_close(keeper);
	leat_keeper_close(other);
}

static void
what_a_server_refuses_is_replaced_once(void **state)
{
	struct leat_keeper *keeper = open_keeper();
	char got[LEAT_KEY_ID];
	unsigned version;

	(void)state;
	answer("one", 3600);
	gets(keeper, "one", 1);
	leat_keeper_drop(keeper, 1);
	leat_keeper_drop(keeper, 1);
	assert_int_equal(try(keeper, got, &version), LEAT_AGAIN);
	answer("two", 3600);
	gets(keeper, "two", 2);
	leat_keeper_drop(keeper, 1); /* an answer to an older request */
	gets(keeper, "two", 2);
	assert_int_equal(starts(), 2);
	leat_keeper_close(keeper);
}

/* Credentials that have expired when they come: our clock may be wrong. */
static void
the_server_decides_what_has_expired(void **state)
{
	struct leat_keeper *keeper = open_keeper();

	(void)state;
	answer("old", -3600);
	gets(keeper, "old", 1);
	gets(keeper, "old", 1);
	assert_int_equal(starts(), 1);
	leat_keeper_close(keeper);
}

static void
a_failure_is_told_to_all_and_tried_again(void **state)
{
	struct leat_keeper *keeper = open_keeper();
	char got[LEAT_KEY_ID];
	unsigned version;
	int fd;

	(void)state;
	fd = open(answers, O_WRONLY);
	assert_int_equal(write(fd, "hush", 4), 4);
	close(fd);
	assert_int_equal(leat_keeper_wait(keeper, NULL, &err), LEAT_INVALID);
	assert_string_equal(
		err.text,
		"the credential_process of profile 'default': the answer has no AccessKeyId and SecretAccessKey");
	while (try(keeper, got, &version) == LEAT_INVALID)
		assert_null(strstr(err.text, "hush"));
	answer("one", 3600);
	gets(keeper, "one", 1);
	leat_keeper_close(keeper);
}

static void
neither_closing_nor_an_interrupt_waits(void **state)
{
	struct leat_keeper *keeper = open_keeper();
	atomic_bool interrupted = true;

	(void)state;
	assert_int_equal(leat_keeper_wait(keeper, &interrupted, &err), LEAT_CANCELLED);
	leat_keeper_close(keeper);
	answer("one", 3600); /* lets the thread end */
}

static int
in_child(struct leat_keeper *parents)
{
	struct leat_keeper *keeper = NULL;
	char got[LEAT_KEY_ID] = "";
	unsigned version;

	if (leat_keeper_wait(parents, NULL, &err) != LEAT_INVALID)
		return 1;
	leat_keeper_close(parents);
	leat_err_clear(&err);
	make_pipe();
	if (leat_keeper_open(&keeper, &storage, &err) != LEAT_OK)
		return 2;
	answer("child", 3600);
	if (leat_keeper_wait(keeper, NULL, &err) != LEAT_OK)
		return 2;
	if (try(keeper, got, &version) != LEAT_OK || strcmp(got, "child") != 0 || version != 1)
		return 3;
	leat_keeper_close(keeper);
	return 0;
}

/* The parent is in the middle of finding. */
static void
a_forked_child_finds_its_own(void **state)
{
	struct leat_keeper *keeper;
	int status;
	pid_t child;

	(void)state;
#if defined(__SANITIZE_THREAD__) /* which does not let a child start threads */
	skip();
#endif
	keeper = open_keeper();
	while (starts() < 1)
		sched_yield();
	child = fork();
	if (child == 0)
		_exit(in_child(keeper));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	answer("parent", 3600);
	gets(keeper, "parent", 1);
	leat_keeper_close(keeper);
}

#define WITH_PROCESS(test) cmocka_unit_test_setup_teardown(test, begin, end)

int
main(void)
{
	static const char *const variables[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE",
	                                        "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"};
	const struct CMUnitTest tests[] = {
		WITH_PROCESS(requests_go_on_while_new_ones_are_found_and_wait_when_the_old_have_expired),
		WITH_PROCESS(what_a_server_refuses_is_replaced_once),
		WITH_PROCESS(the_server_decides_what_has_expired),
		WITH_PROCESS(a_failure_is_told_to_all_and_tried_again),
		WITH_PROCESS(neither_closing_nor_an_interrupt_waits),
		WITH_PROCESS(a_forked_child_finds_its_own),
	};

	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		unsetenv(variables[i]);
	setenv("AWS_EC2_METADATA_DISABLED", "true", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
