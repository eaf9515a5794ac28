/* runner.c - see runner.h */
#include "support/runner.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct leat_step_kind leat_step_kind_run;
static const char *const no_code[] = {NULL};

int
trial_open(void **state)
{
	struct trial *t = calloc(1, sizeof(*t));
	char folder[PATH_MAX];

	assert_non_null(t);
	*state = t;
	temp_make(&t->temp);
	leat_mem_init(&t->mem, SIZE_MAX);
	snprintf(folder, sizeof(folder), "%s/.leat", t->temp.folder);
	assert_int_equal(leat_cas_open(&t->cas, &t->mem, folder, LEAT_CAS_WRITE, &t->err), LEAT_OK);
	assert_int_equal(leat_cas_begin(t->cas, &t->err), LEAT_OK);
	t->step = (struct leat_step){.name = "decode",
	                             .kind = &leat_step_kind_run,
	                             .code = no_code,
	                             .suffix = "",
	                             .feed = "",
	                             .seed = 7,
	                             .cpus = 1,
	                             .slices.count = 1};
	t->project = (struct leat_project){.mem = &t->mem, .folder = t->temp.folder, .step = &t->step, .steps = 1};
	t->action = (struct leat_action){.project = &t->project, .step = &t->step, .input = t->input};
	t->runner = (struct leat_runner){.cas = t->cas, .stop = &t->stop};
	t->cpus = 1;
	assert_int_equal(leat_sandbox_pool_open(&t->pool, &t->mem, 2, &t->err), LEAT_OK);
	leat_running_init(&t->running);
	return 0;
}

int
trial_close(void **state)
{
	struct trial *t = *state;

	leat_ran_end(&t->ran, &t->mem);
	leat_running_end(&t->running);
	leat_order_free(&t->order);
	leat_sandbox_pool_close(t->pool);
	leat_cas_close(t->cas);
	assert_int_equal(atomic_load(&t->mem.used), 0);
	temp_remove(&t->temp);
	free(t);
	return 0;
}

/* Another thread may be looking, so the lock stays. */
static void
forget_progress(struct leat_running *running)
{
	atomic_store(&running->group, 0);
	atomic_store(&running->threads, 0);
	atomic_store(&running->bytes, 0);
	atomic_store(&running->peak_bytes, 0);
	pthread_mutex_lock(&running->lock);
	*running->last_line = '\0';
	pthread_mutex_unlock(&running->lock);
}

enum leat_outcome
trial_run(struct trial *t, const char *command)
{
	leat_ran_end(&t->ran, &t->mem);
	forget_progress(&t->running);
	t->step.text = command;
	leat_err_clear(&t->err);
	leat_order_free(&t->order);
	if (leat_order_make(&t->order, &t->action, t->cpus, &t->err) != LEAT_OK ||
	    leat_runner_run(&t->runner, &t->order, &t->running, &t->ran, &t->err) != LEAT_OK)
		fail_msg("%s: %s", command, t->err.text);
	return t->ran.outcome;
}

char *
trial_out(struct trial *t, const char *command)
{
	unsigned char *bytes;
	char *text;
	size_t len;

	if (trial_run(t, command) != LEAT_RAN)
		fail_msg("%s: %s", command, t->ran.why);
	bytes = temp_read(t->ran.out, &len);
	text = strndup((char *)bytes, len);
	free(bytes);
	return text;
}

char *
trial_log(struct trial *t, size_t *len)
{
	char path[PATH_MAX];

	leat_cas_blob_path(t->cas, &t->ran.log, path);
	return (char *)temp_read(path, len);
}

struct leat_input *
trial_store_text(struct trial *t, const char *name, const char *text)
{
	struct leat_input *input = &t->input[t->action.inputs++];

	*input = (struct leat_input){.name = name};
	input->content.kind = LEAT_CONTENT_FILE;
	input->content.bytes = strlen(text);
	assert_int_equal(leat_cas_put_bytes(t->cas, text, strlen(text), &input->content.digest, &t->err), LEAT_OK);
	return input;
}

static bool
has_word(const char *pid, const char *word)
{
	char path[300], text[4096];
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "/proc/%s/cmdline", pid);
	file = fopen(path, "re");
	if (file == NULL)
		return false;
	len = fread(text, 1, sizeof(text), file);
	fclose(file);
	return memmem(text, len, word, strlen(word)) != NULL;
}

bool
process_runs(const char *word)
{
	DIR *folder = opendir("/proc");
	struct dirent *entry;
	bool found = false;

	assert_non_null(folder);
	while (!found && (entry = readdir(folder)) != NULL)
		found = *entry->d_name >= '0' && *entry->d_name <= '9' && atoi(entry->d_name) != getpid() &&
		        has_word(entry->d_name, word);
	closedir(folder);
	return found;
}

void
wait_until_gone(const char *word)
{
	for (int i = 0; process_runs(word); i++) {
		if (i == 6000)
			fail_msg("a process with %s is still there", word);
		usleep(10000);
	}
}
