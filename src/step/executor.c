/* executor.c - see executor.h */
#include "step/executor.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/threads.h"

enum { POLL_NS = 50 * 1000 * 1000, MOST_LOSSES = 4, PATIENCE_S = 10 };

/* An action that somebody waits for. */
struct call {
	uint64_t id;
	struct leat_running *running;
	char *result; /* JSON, of malloc; NULL: not yet */
	bool lost, failed;
	char why[400];
	pthread_cond_t news;
	struct call *next;
};

struct leat_executor {
	struct leat_mem *mem;
	char *name, *log; /* where its standard error goes */
	pid_t pid;
	int to;     /* its standard input */
	FILE *from; /* its standard output */
	struct leat_threads reader;
	pthread_mutex_t writing; /* a line is written whole */
	pthread_mutex_t lock;    /* guards what follows */
	pthread_cond_t changed;
	struct call *call;
	uint64_t next_id;
	unsigned cpus;
	bool ready, ended;
	char why[400]; /* of an executor that failed; "" if it just ended */
};

/* ---- starting ---- */

/* NAME and ADDRESS of "NAME://ADDRESS". The name becomes part of a module's. */
static enum leat_status
split_where(const char *where, char name[32], const char **address, struct leat_err *err)
{
	const char *colon = strstr(where, "://");
	size_t len = colon == NULL ? strlen(where) : (size_t)(colon - where);

	*address = colon == NULL ? "" : colon + 3;
	if (len == 0 || len >= 32 || strspn(where, "abcdefghijklmnopqrstuvwxyz_") < len)
		return leat_fail(err, LEAT_INVALID,
		                 "'%s' is not where to build: expected local, ray://HOST:PORT, spark://HOST:PORT, or "
		                 "the name of another executor",
		                 where);
	snprintf(name, 32, "%.*s", (int)len, where);
	return LEAT_OK;
}

static bool
spawn(struct leat_executor *e, char *const *arguments, int in, int out)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none;
	int failed;

	sigemptyset(&none);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in, 0);
	posix_spawn_file_actions_adddup2(&actions, out, 1);
	posix_spawn_file_actions_addopen(&actions, 2, e->log, O_WRONLY | O_CREAT | O_APPEND, 0666);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setpgroup(&attributes, 0); /* ^C is for the build, which ends it */
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
	failed = posix_spawnp(&e->pid, arguments[0], &actions, &attributes, arguments, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	errno = failed;
	return failed == 0;
}

static enum leat_status
start_process(struct leat_executor *e, char *const *arguments, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) != 0)
		return leat_fail_errno(err, errno, "cannot make a pipe for the executor");
	if (pipe2(out, O_CLOEXEC) != 0) {
		status = leat_fail_errno(err, errno, "cannot make a pipe for the executor");
		close(in[0]);
		close(in[1]);
		return status;
	}
	if (!spawn(e, arguments, in[0], out[1])) {
		e->pid = 0;
		status = leat_fail_errno(err, errno, "cannot start '%s' for the executor; set LEAT_PYTHON",
		                         arguments[0]);
	}
	close(in[0]);
	close(out[1]);
	e->to = in[1];
	e->from = fdopen(out[0], "r");
	if (e->from == NULL) {
		close(out[0]);
		return leat_fail(err, LEAT_NOMEM, "out of memory: a pipe of the executor");
	}
	return status;
}

/* The last lines that it wrote to standard error, which say why it failed. */
static void
read_log(const struct leat_executor *e, char *text, size_t cap)
{
	char bytes[2048];
	FILE *file = fopen(e->log, "re");
	size_t len = 0;
	char *end;

	*text = '\0';
	if (file == NULL)
		return;
	if (fseek(file, -(long)(sizeof(bytes) - 1), SEEK_END) != 0)
		rewind(file);
	len = fread(bytes, 1, sizeof(bytes) - 1, file);
	fclose(file);
	while (len > 0 && (bytes[len - 1] == '\n' || bytes[len - 1] == ' '))
		len--;
	end = memrchr(bytes, '\n', len);
	leat_show(text, cap, end == NULL ? bytes : end + 1, len - (end == NULL ? 0 : (size_t)(end + 1 - bytes)));
}

/* ---- answers ---- */

static struct call *
find_call(struct leat_executor *e, const json_t *id)
{
	struct call *call = e->call;

	while (call != NULL && (json_int_t)call->id != json_integer_value(id))
		call = call->next;
	return json_is_integer(id) ? call : NULL;
}

static void
copy_text(char *to, size_t cap, const json_t *value)
{
	const char *text = json_string_value(value);

	leat_show(to, cap, text == NULL ? "for an unknown reason" : text,
	          text == NULL ? strlen("for an unknown reason") : strlen(text));
}

static void
note_progress(struct call *call, const json_t *progress)
{
	struct leat_running *running = call->running;
	const char *text = json_string_value(json_object_get(progress, "text"));
	json_int_t done = json_integer_value(json_object_get(progress, "done"));
	json_int_t total = json_integer_value(json_object_get(progress, "total"));

	atomic_store(&running->done, done < 0 ? 0 : (unsigned long long)done);
	atomic_store(&running->total, total < 0 ? 0 : (unsigned long long)total);
	if (text == NULL)
		return;
	pthread_mutex_lock(&running->lock);
	leat_show(running->last_line, sizeof(running->last_line), text, strlen(text));
	pthread_mutex_unlock(&running->lock);
}

/* With the lock: an answer about one action. */
static void
take_answer(struct leat_executor *e, const json_t *root)
{
	const json_t *lost = json_object_get(root, "lost"), *result = json_object_get(root, "result");
	const json_t *error = json_object_get(root, "error"), *progress = json_object_get(root, "progress");
	struct call *call = find_call(e, lost != NULL ? lost : json_object_get(root, "id"));

	if (call == NULL)
		return;
	if (progress != NULL) {
		note_progress(call, progress);
		return;
	}
	if (lost != NULL) {
		call->lost = true;
		copy_text(call->why, sizeof(call->why), json_object_get(root, "why"));
	} else if (error != NULL) {
		call->failed = true;
		copy_text(call->why, sizeof(call->why), error);
	} else if (result != NULL && call->result == NULL) {
		call->result = json_dumps(result, JSON_COMPACT);
		call->failed = call->result == NULL;
	}
	pthread_cond_signal(&call->news);
}

/* With the lock. */
static void
take_line(struct leat_executor *e, const char *line, size_t len)
{
	json_t *root = json_loadb(line, len, JSON_REJECT_DUPLICATES, NULL);
	const json_t *ready = json_object_get(root, "ready"), *failed = json_object_get(root, "failed");
	json_int_t cpus = json_integer_value(json_object_get(ready, "cpus"));

	if (ready != NULL && cpus > 0) {
		e->cpus = cpus > 65536 ? 65536 : (unsigned)cpus;
		e->ready = true;
		pthread_cond_broadcast(&e->changed);
	} else if (failed != NULL) {
		copy_text(e->why, sizeof(e->why), failed);
	} else {
		take_answer(e, root);
	}
	json_decref(root);
}

static void
read_answers(void *arg, unsigned number)
{
	struct leat_executor *e = arg;
	size_t cap = 0;
	char *line = NULL;
	ssize_t len;

	(void)number;
	while ((len = getline(&line, &cap, e->from)) > 0) {
		pthread_mutex_lock(&e->lock);
		take_line(e, line, (size_t)len);
		pthread_mutex_unlock(&e->lock);
	}
	free(line);
	pthread_mutex_lock(&e->lock);
	e->ended = true;
	pthread_cond_broadcast(&e->changed);
	for (struct call *call = e->call; call != NULL; call = call->next)
		pthread_cond_signal(&call->news);
	pthread_mutex_unlock(&e->lock);
}

/* ---- opening and closing ---- */

static enum leat_status
fail_ended(struct leat_executor *e, struct leat_err *err)
{
	char text[sizeof(e->why)];

	read_log(e, text, sizeof(text));
	return leat_fail(err, LEAT_IO, "the executor '%s' %s%s", e->name, *e->why ? "failed: " : "ended: ",
	                 *e->why ? e->why
	                 : *text ? text
	                         : "it said nothing");
}

static enum leat_status
wait_until_ready(struct leat_executor *e, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	pthread_mutex_lock(&e->lock);
	while (!e->ready && !e->ended)
		pthread_cond_wait(&e->changed, &e->lock);
	if (!e->ready)
		status = fail_ended(e, err);
	pthread_mutex_unlock(&e->lock);
	return status;
}

/* -m leat.executor.NAME --address ADDRESS --leat COMMAND --store FOLDER --run RUN */
static enum leat_status
start(struct leat_executor *e, struct leat_cas *cas, const char *address, struct leat_err *err)
{
	const char *python = getenv("LEAT_PYTHON");
	char command[PATH_MAX] = "leat", module[64];
	ssize_t len = readlink("/proc/self/exe", command, sizeof(command) - 1);
	const char *arguments[] = {python == NULL || *python == '\0' ? "python3" : python,
	                           "-m",
	                           module,
	                           "--address",
	                           address,
	                           "--leat",
	                           command,
	                           "--store",
	                           leat_cas_folder(cas),
	                           "--run",
	                           leat_cas_run(cas),
	                           NULL};
	enum leat_status status;

	if (len > 0)
		command[len] = '\0';
	snprintf(module, sizeof(module), "leat.executor.%s", e->name);
	status = start_process(e, (char *const *)(uintptr_t)arguments, err);
	if (status == LEAT_OK)
		status = leat_threads_start(&e->reader, e->mem, 1, "leat-executor", read_answers, e, err);
	return status == LEAT_OK ? wait_until_ready(e, err) : status;
}

enum leat_status
leat_executor_open(struct leat_executor **executor, struct leat_cas *cas, struct leat_mem *mem, const char *where,
                   struct leat_err *err)
{
	struct leat_executor *e = leat_alloc(mem, sizeof(*e));
	char name[32], folder[PATH_MAX];
	const char *address;
	enum leat_status status = split_where(where, name, &address, err);

	*executor = NULL;
	if (e == NULL)
		return leat_fail_mem(err, mem, sizeof(*e), "an executor");
	e->mem = mem;
	e->to = -1;
	pthread_mutex_init(&e->writing, NULL);
	pthread_mutex_init(&e->lock, NULL);
	pthread_cond_init(&e->changed, NULL);
	leat_cas_temp_path(cas, folder);
	e->log = leat_asprintf(mem, "%s.executor", folder);
	e->name = status == LEAT_OK ? leat_strdup(mem, name) : NULL;
	if (status == LEAT_OK && (e->log == NULL || e->name == NULL))
		status = leat_fail_mem(err, mem, PATH_MAX, "an executor");
	if (status == LEAT_OK)
		status = start(e, cas, address, err);
	if (status == LEAT_OK)
		*executor = e;
	else
		leat_executor_close(e);
	return status;
}

/* It ends when its standard input does; if not, it is killed. */
static void
end_process(struct leat_executor *e)
{
	if (e->to >= 0)
		close(e->to);
	for (int i = 0; e->pid > 0 && i < PATIENCE_S * 100; i++) {
		if (waitpid(e->pid, NULL, WNOHANG) != 0) {
			e->pid = 0;
			return;
		}
		usleep(10000);
	}
	if (e->pid > 0) {
		kill(-e->pid, SIGKILL);
		while (waitpid(e->pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
}

void
leat_executor_close(struct leat_executor *e)
{
	if (e == NULL)
		return;
	end_process(e);
	leat_threads_join(&e->reader);
	if (e->from != NULL)
		fclose(e->from);
	pthread_mutex_destroy(&e->writing);
	pthread_mutex_destroy(&e->lock);
	pthread_cond_destroy(&e->changed);
	leat_free(e->mem, e->name);
	leat_free(e->mem, e->log);
	leat_free(e->mem, e);
}

unsigned
leat_executor_cpus(const struct leat_executor *e)
{
	return e->cpus;
}

/* ---- one action ---- */

/* False: the executor has ended. */
static bool
send(struct leat_executor *e, const char *line, size_t len)
{
	bool sent = true;

	pthread_mutex_lock(&e->writing);
	while (len > 0 && sent) {
		ssize_t n = write(e->to, line, len);

		sent = n > 0 || errno == EINTR;
		line += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	pthread_mutex_unlock(&e->writing);
	return sent;
}

static enum leat_status
submit(struct leat_executor *e, const struct leat_order *order, uint64_t id, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_str line;

	leat_str_init(&line, e->mem, SIZE_MAX);
	leat_str_addf(&line, "{\"submit\":%llu,\"cpus\":%u,\"memory\":%llu,\"line\":{\"id\":%llu,\"order\":",
	              (unsigned long long)id, order->cpus, (unsigned long long)order->memory_bytes,
	              (unsigned long long)id);
	leat_order_write(order, &line);
	leat_str_add(&line, "}}\n");
	if (line.failed)
		status = leat_fail_mem(err, e->mem, line.len, "an order");
	else if (!send(e, leat_str_text(&line), line.len))
		status = LEAT_IO; /* the reader says why */
	leat_str_free(&line);
	return status;
}

static void
cancel(struct leat_executor *e, uint64_t id)
{
	char line[64];

	snprintf(line, sizeof(line), "{\"cancel\":%llu}\n", (unsigned long long)id);
	(void)send(e, line, strlen(line));
}

static void
wait_for_news(struct leat_executor *e, struct call *call)
{
	struct timespec until;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (until.tv_nsec + POLL_NS) / 1000000000;
	until.tv_nsec = (until.tv_nsec + POLL_NS) % 1000000000;
	pthread_cond_timedwait(&call->news, &e->lock, &until);
}

/* With the lock, which is let go meanwhile. */
static void
wait_for_end(struct leat_executor *e, struct call *call, const atomic_bool *stop)
{
	bool cancelled = false;

	while (call->result == NULL && !call->lost && !call->failed && !e->ended) {
		wait_for_news(e, call);
		if (!cancelled && stop != NULL && atomic_load(stop)) {
			cancelled = true;
			pthread_mutex_unlock(&e->lock);
			cancel(e, call->id);
			pthread_mutex_lock(&e->lock);
		}
	}
}

static void
add_call(struct leat_executor *e, struct call *call, struct leat_running *running)
{
	pthread_condattr_t monotonic;

	*call = (struct call){.running = running};
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&call->news, &monotonic);
	pthread_condattr_destroy(&monotonic);
	pthread_mutex_lock(&e->lock);
	call->id = e->next_id++;
	call->next = e->call;
	e->call = call;
	pthread_mutex_unlock(&e->lock);
}

static void
remove_call(struct leat_executor *e, struct call *call)
{
	struct call **link = &e->call;

	pthread_mutex_lock(&e->lock);
	while (*link != call)
		link = &(*link)->next;
	*link = call->next;
	pthread_mutex_unlock(&e->lock);
	pthread_cond_destroy(&call->news);
	free(call->result);
}

static void
stopped(struct leat_ran *ran)
{
	ran->outcome = LEAT_STOPPED;
	snprintf(ran->why, sizeof(ran->why), "was stopped");
}

/* Once: LEAT_AGAIN if the node died. */
static enum leat_status
run_once(struct leat_executor *e, const struct leat_order *order, const atomic_bool *stop, struct leat_running *running,
         struct leat_ran *ran, struct leat_err *err)
{
	struct call call;
	enum leat_status status;

	add_call(e, &call, running);
	status = submit(e, order, call.id, err);
	pthread_mutex_lock(&e->lock);
	if (status == LEAT_OK)
		wait_for_end(e, &call, stop);
	else if (status == LEAT_IO)
		call.failed = !e->ended;
	if (status == LEAT_OK && call.result != NULL)
		status = leat_ran_read(ran, e->mem, call.result, strlen(call.result), err);
	else if (stop != NULL && atomic_load(stop))
		stopped(ran);
	else if (call.lost)
		status = LEAT_AGAIN;
	else if (call.failed && status == LEAT_OK)
		status = leat_fail(err, LEAT_IO, "a node cannot run '%s': %s", order->step, call.why);
	else if (status == LEAT_OK || status == LEAT_IO)
		status = fail_ended(e, err);
	if (status == LEAT_AGAIN)
		snprintf(ran->why, sizeof(ran->why), "%s", call.why);
	pthread_mutex_unlock(&e->lock);
	remove_call(e, &call);
	return status;
}

enum leat_status
leat_executor_run(struct leat_executor *e, const struct leat_order *order, const atomic_bool *stop,
                  struct leat_running *running, struct leat_ran *ran, struct leat_err *err)
{
	char why[sizeof(ran->why)];
	enum leat_status status = LEAT_AGAIN;

	for (int losses = 0; status == LEAT_AGAIN && losses < MOST_LOSSES; losses++) {
		*ran = (struct leat_ran){.checkpoint_fd = -1};
		status = run_once(e, order, stop, running, ran, err);
	}
	if (status != LEAT_AGAIN)
		return status;
	/* For people it failed as a command that used up its machine. */
	snprintf(why, sizeof(why), "%s", ran->why);
	ran->outcome = LEAT_SIGNALED;
	ran->code = SIGKILL;
	snprintf(ran->why, sizeof(ran->why),
	         "was lost %d times, the last time because %.200s; has it too little memory?", MOST_LOSSES, why);
	ran->metrics = leat_strdup(e->mem, "");
	return ran->metrics == NULL ? leat_fail_mem(err, e->mem, 1, "metrics") : LEAT_OK;
}
