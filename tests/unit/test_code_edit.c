/* test_code_edit.c - files of the code that are written to while a build begins */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "step/code.h"
#include "step/code_inside.h"
#include "support/step.h"

enum { SIZE = 1 << 20, ROUNDS = 40 };

struct editor {
	char path[600];
	atomic_bool wanted, done;
};

/* Writes other bytes in place, and makes the file shorter, each time it is wanted. These are two changes, and a file is
 * read three times before it is refused. */
static void *
edit(void *arg)
{
	static char bytes[SIZE];
	struct editor *editor = arg;
	int fd = open(editor->path, O_WRONLY | O_CLOEXEC);

	for (int i = 0; fd >= 0 && !atomic_load(&editor->done);) {
		if (!atomic_load(&editor->wanted)) {
			usleep(50);
			continue;
		}
		memset(bytes, 'a' + i % 26, sizeof(bytes));
		if (pwrite(fd, bytes, sizeof(bytes), 0) < 0 || ftruncate(fd, i++ % 3 ? SIZE : 10) != 0)
			break;
		atomic_store(&editor->wanted, false);
	}
	close(fd);
	return NULL;
}

static void
is_what_its_name_says(struct step_fixture *f, const struct leat_content *content)
{
	struct leat_digest digest;
	char *bytes;
	size_t len;

	step_must(f, leat_cas_read(f->cas, &content->digest, 2 * SIZE, &bytes, &len, &f->err));
	leat_sha256(bytes, len, digest.byte);
	assert_int_equal(len, content->bytes);
	assert_memory_equal(digest.byte, content->digest.byte, sizeof(digest.byte));
	leat_free(&f->mem, bytes);
}

static void
a_file_that_is_written_to_is_stored_as_it_was_hashed(void **state)
{
	struct step_fixture *f = *state;
	struct editor editor = {.done = false};
	pthread_t thread;

	step_put(f, "a.py", "");
	snprintf(editor.path, sizeof(editor.path), "%s/a.py", f->temp.folder);
	step_open_project(f, "steps: {s: {run: python a.py}}");
	assert_int_equal(pthread_create(&thread, NULL, edit, &editor), 0);
	for (int i = 0; i < ROUNDS; i++) {
		while (atomic_load(&editor.wanted))
			usleep(50);
		atomic_store(&editor.wanted, true);
		usleep((unsigned)i % 8 * 100); /* another moment each time */
		step_open_code(f);
		assert_int_equal(f->code->files, 1);
		is_what_its_name_says(f, &f->code->file[0].content);
	}
	atomic_store(&editor.done, true);
	pthread_join(thread, NULL);
}

static void
an_executable_stays_one(void **state)
{
	struct step_fixture *f = *state;
	char path[600];

	step_put(f, "tool.sh", "echo made\n");
	snprintf(path, sizeof(path), "%s/tool.sh", f->temp.folder);
	assert_int_equal(chmod(path, 0755), 0);
	step_open_project(f, "steps: {s: {run: ./tool.sh}}");
	step_open_code(f);
	assert_int_equal(f->code->file[0].content.kind, LEAT_CONTENT_EXECUTABLE);
	assert_int_equal(f->code->file[0].content.bytes, 10);
	is_what_its_name_says(f, &f->code->file[0].content);
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_file_that_is_written_to_is_stored_as_it_was_hashed, step_set_up,
	                                        step_tear_down),
		cmocka_unit_test_setup_teardown(an_executable_stays_one, step_set_up, step_tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
