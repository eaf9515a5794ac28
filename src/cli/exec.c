/* exec.c - `leat exec`: run actions of a build that plans on another machine
 *
 * An executor (python/leat/executor) starts it on a node and feeds it orders, a line of JSON each. Answers are lines,
 *too:
 *
 *	{"id":7,"order":{...}}                    in: run this
 *	{"id":7,"progress":{"done":3,"total":10,"text":"fold 3"}}
 *	{"id":7,"result":{"outcome":"ran",...}}   out: what came of it (step/ran_json.c)
 *	{"id":7,"error":"..."}                    out: the node could not run it
 *
 * One order at a time. The main thread runs them, another one reports their progress. */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/threads.h"
#include "cas/cas.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "step/runner.h"

enum { PROGRESS_NS = 500 * 1000 * 1000 };

struct exec {
	const char *store, *run;
};

static const struct leat_opt options[] = {
	LEAT_STRING(struct exec, store, "", "folder of the content store, .leat"),
	LEAT_STRING(struct exec, run, "", "name of the build"),
	LEAT_OPT_END,
};

/* What the threads of this process share. */
struct node {
	struct leat_mem *mem;
	struct leat_cas *cas;
	atomic_bool stop;
	struct leat_running running;
	pthread_mutex_t lock; /* guards what follows, and standard output */
	pthread_cond_t changed;
	json_int_t id; /* of the action that runs; -1: none */
	bool is_closed;
};

/* ---- answers ---- */

static void
answer(struct node *node, json_int_t id, const char *member, const char *json)
{
	pthread_mutex_lock(&node->lock);
	printf("{\"id\":%lld,\"%s\":%s}\n", (long long)id, member, json);
	fflush(stdout);
	pthread_mutex_unlock(&node->lock);
}

static void
answer_error(struct node *node, json_int_t id, const struct leat_err *why)
{
	struct leat_str text;

	leat_str_init(&text, node->mem, 4 * sizeof(why->text));
	leat_str_add_json(&text, why->text);
	answer(node, id, "error", text.failed ? "\"out of memory\"" : leat_str_text(&text));
	leat_str_free(&text);
}

/* With the lock. Only what changed since the last time. */
static void
report(struct node *node, char *last, size_t cap)
{
	struct leat_running *running = &node->running;
	struct leat_str json;

	leat_str_init(&json, node->mem, 1 << 16);
	leat_str_addf(&json, "{\"id\":%lld,\"progress\":{\"done\":%llu,\"total\":%llu,\"text\":", (long long)node->id,
	              atomic_load(&running->done), atomic_load(&running->total));
	pthread_mutex_lock(&running->lock);
	leat_str_add_json(&json, running->last_line);
	pthread_mutex_unlock(&running->lock);
	leat_str_add(&json, "}}");
	if (!json.failed && strcmp(leat_str_text(&json), last) != 0) {
		snprintf(last, cap, "%s", leat_str_text(&json));
		printf("%s\n", last);
		fflush(stdout);
	}
	leat_str_free(&json);
}

static void
report_progress(void *arg, unsigned number)
{
	struct node *node = arg;
	char last[1200] = "";
	struct timespec until;

	(void)number;
	pthread_mutex_lock(&node->lock);
	while (!node->is_closed) {
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_sec += (until.tv_nsec + PROGRESS_NS) / 1000000000;
		until.tv_nsec = (until.tv_nsec + PROGRESS_NS) % 1000000000;
		pthread_cond_timedwait(&node->changed, &node->lock, &until);
		if (node->id >= 0 && !node->is_closed)
			report(node, last, sizeof(last));
	}
	pthread_mutex_unlock(&node->lock);
}

/* ---- one order ---- */

static bool
is_empty(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	bool empty = true;

	while (dir != NULL && empty && (entry = readdir(dir)) != NULL)
		empty = *entry->d_name == '.';
	if (dir != NULL)
		closedir(dir);
	return empty;
}

/* What it made, and what its Python imported, go into the store. */
static enum leat_status
keep(struct node *node, const struct leat_order *order, struct leat_ran *ran, struct leat_err *err)
{
	char imports[PATH_MAX + 16];
	struct leat_err why;
	enum leat_status status;

	leat_err_clear(&why);
	status = leat_cas_take(node->cas, ran->out, &ran->output, &why);
	if (status == LEAT_DATA) { /* such as a socket: the command's fault */
		ran->outcome = LEAT_EXITED;
		leat_show(ran->why, sizeof(ran->why), why.text, strlen(why.text));
		return LEAT_OK;
	}
	if (status != LEAT_OK)
		return leat_fail_as(err, &why);
	snprintf(imports, sizeof(imports), "%s/imports", ran->sandbox);
	return order->has_code && !is_empty(imports) ? leat_cas_take(node->cas, imports, &ran->imports, err) : LEAT_OK;
}

static enum leat_status
run_order(struct node *node, const struct leat_order *order, struct leat_str *result, struct leat_err *err)
{
	struct leat_runner runner = {.cas = node->cas, .stop = &node->stop};
	struct leat_ran ran = {0};
	enum leat_status status = leat_runner_run(&runner, order, &node->running, &ran, err);

	if (status == LEAT_OK && ran.outcome == LEAT_RAN)
		status = keep(node, order, &ran, err);
	else if (status == LEAT_OK)
		status = leat_ran_take_rejects(&ran, node->cas, &ran.rejects, err);
	if (status == LEAT_OK) {
		leat_ran_write(&ran, result);
		ran.kept = ran.outcome == LEAT_RAN;
	}
	if (status == LEAT_OK && result->failed)
		status = leat_fail_mem(err, node->mem, result->len, "a result");
	leat_ran_end(&ran, node->mem);
	return status;
}

static void
begin_action(struct node *node, json_int_t id)
{
	pthread_mutex_lock(&node->lock);
	leat_running_init(&node->running);
	node->id = id;
	pthread_mutex_unlock(&node->lock);
}

static void
end_action(struct node *node)
{
	pthread_mutex_lock(&node->lock);
	node->id = -1;
	leat_running_end(&node->running);
	pthread_mutex_unlock(&node->lock);
}

static void
run_text(struct node *node, json_int_t id, const char *text)
{
	struct leat_order order;
	struct leat_str result;
	struct leat_err err;
	enum leat_status status;

	leat_err_clear(&err);
	leat_str_init(&result, node->mem, SIZE_MAX);
	status = leat_order_read(&order, node->mem, text, strlen(text), &err);
	if (status == LEAT_OK) {
		begin_action(node, id);
		status = run_order(node, &order, &result, &err);
		end_action(node);
		leat_order_free(&order);
	}
	if (status == LEAT_OK)
		answer(node, id, "result", leat_str_text(&result));
	else
		answer_error(node, id, &err);
	leat_str_free(&result);
}

static enum leat_status
run_line(struct node *node, const char *line, size_t len, struct leat_err *err)
{
	json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *id = json_object_get(root, "id"), *order = json_object_get(root, "order");
	char *text = json_is_object(order) ? json_dumps(order, JSON_COMPACT) : NULL;
	enum leat_status status = LEAT_OK;

	if (text != NULL && json_is_integer(id) && json_integer_value(id) >= 0)
		run_text(node, json_integer_value(id), text);
	else
		status = leat_fail(err, LEAT_DATA, "expected a line of JSON with an id and an order");
	free(text);
	json_decref(root);
	return status;
}

/* ---- the command ---- */

static enum leat_status
run_lines(struct node *node, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	size_t cap = 0;
	char *line = NULL;
	ssize_t len;

	while (status == LEAT_OK && !atomic_load(&node->stop) && (len = getline(&line, &cap, stdin)) > 0)
		status = run_line(node, line, (size_t)len, err);
	free(line);
	return status;
}

static void
stop(void *arg)
{
	struct node *node = arg;

	atomic_store(&node->stop, true);
	close(STDIN_FILENO); /* if nothing runs, there is nothing to wait for */
}

static enum leat_status
serve(struct node *node, struct leat_err *err)
{
	struct leat_interrupt interrupt = {0};
	struct leat_threads reporter = {0};
	enum leat_status status;

	leat_interrupt_begin(&interrupt, stop, node);
	status = leat_threads_start(&reporter, node->mem, 1, "leat-progress", report_progress, node, err);
	if (status == LEAT_OK)
		status = run_lines(node, err);
	pthread_mutex_lock(&node->lock);
	node->is_closed = true;
	pthread_cond_signal(&node->changed);
	pthread_mutex_unlock(&node->lock);
	leat_threads_join(&reporter);
	leat_interrupt_end(&interrupt);
	return status;
}

static enum leat_status
guard_and_serve(struct node *node, struct leat_err *err)
{
	struct leat_guard guard = {0};
	char folder[PATH_MAX];
	enum leat_status status;

	leat_cas_temp_path(node->cas, folder);
	*strrchr(folder, '/') = '\0';
	status = leat_guard_start(&guard, folder, err);
	if (status == LEAT_OK)
		status = serve(node, err);
	leat_guard_end(&guard);
	return status;
}

static enum leat_status
run_exec(const struct leat_invocation *run, struct leat_err *err)
{
	const struct exec *exec = run->params;
	struct node node = {.mem = run->mem, .id = -1};
	enum leat_status status;

	if (*exec->store == '\0' || *exec->run == '\0')
		return leat_fail(err, LEAT_INVALID, "needs --store and --run; executors of 'leat build --on' start it");
	pthread_mutex_init(&node.lock, NULL);
	pthread_cond_init(&node.changed, NULL);
	status = leat_cas_open(&node.cas, run->mem, exec->store, LEAT_CAS_NODE, err);
	if (status == LEAT_OK)
		status = leat_cas_join(node.cas, exec->run, err);
	if (status == LEAT_OK)
		status = guard_and_serve(&node, err);
	leat_cas_close(node.cas);
	pthread_mutex_destroy(&node.lock);
	pthread_cond_destroy(&node.changed);
	return status;
}

const struct leat_command leat_command_exec = {
	.name = "exec",
	.summary = "Run actions of a build on another machine",
	.operands = "",
	.help = "Executors of 'leat build --on' start it on the nodes of a cluster. It reads orders from\n"
		"standard input, a line of JSON each, and writes what came of them to standard output.\n"
		"docs/SCALING.md describes both, for executors of your own.",
	.example = "leat exec --store /shared/project/.leat --run 20261117T201530-4711",
	.opts = options,
	.params_size = sizeof(struct exec),
	.run = run_exec,
};
