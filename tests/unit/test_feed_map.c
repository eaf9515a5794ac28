/* test_feed_map.c - functions of the program in the chain: on the worker's thread, and in another process */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feed/feed.h"
#include "support/data.h"
#include "support/trace.h"

static const size_t counts[] = {20, 0, 17};
static struct data data;

DATA_FIXTURE(NULL)

/* ---- functions ---- */

static const struct leat_value *
value_of(const struct leat_map_call *call, const char *name)
{
	for (int i = 0; i < call->count; i++)
		if (strcmp(call->value[i].name, name) == 0)
			return &call->value[i];
	fail_msg("no field %s", name);
	return NULL;
}

/* label -> label * 10, noise (two random numbers), and tokens twice in a row. */
static enum leat_status
change(void *arg, const struct leat_map_call *call, struct leat_err *err)
{
	const struct leat_value *tokens = value_of(call, "tokens");
	int64_t label = *(const int64_t *)value_of(call, "label")->data, length = tokens->shape[0] * 2;
	int64_t *to = leat_map_output(call, 0, NULL, err), two = 2;
	uint64_t bits[2];
	float *noise;

	if (arg)
		atomic_fetch_add((atomic_int *)arg, 1);
	if (!to)
		return err->status;
	*to = label * 10;
	if (!(noise = leat_map_output(call, 1, &two, err)))
		return err->status;
	memcpy(bits, call->random, sizeof bits);
	noise[0] = (float)(bits[0] >> 40);
	noise[1] = (float)(bits[1] >> 40);
	if (!(to = leat_map_output(call, 2, &length, err)))
		return err->status;
	memcpy(to, tokens->data, (size_t)length * 4);
	memcpy(to + length / 2, tokens->data, (size_t)length * 4);
	return LEAT_OK;
}

/* Every seventh label is bad. */
static enum leat_status
refuse(void *arg, const struct leat_map_call *call, struct leat_err *err)
{
	int64_t label = *(const int64_t *)call->value[0].data, *to = leat_map_output(call, 0, NULL, err);

	if (!to)
		return err->status;
	*to = label;
	if (label % 7 != 3)
		return LEAT_OK;
	if (err) {
		err->status = LEAT_FUNCTION;
		snprintf(err->text, sizeof err->text, "no %" PRId64, label);
	}
	return arg ? *(const enum leat_status *)arg : LEAT_FUNCTION;
}

static enum leat_status
forget(void *arg, const struct leat_map_call *call, struct leat_err *err)
{
	(void)arg, (void)call, (void)err;
	return LEAT_OK;
}

static enum leat_status
grow(void *arg, const struct leat_map_call *call, struct leat_err *err)
{
	int64_t length = *(const int64_t *)call->value[0].data;

	(void)arg;
	if (!leat_map_output(call, 0, &length, err))
		return err->status;
	return LEAT_OK;
}

static const struct leat_field changed[] = {
	{"label", LEAT_I64, 0, {0}}, {"noise", LEAT_F32, 1, {2}}, {"tokens", LEAT_I64, 1, {-1}}};
static const struct leat_field one_label[] = {{"label", LEAT_I64, 0, {0}}};
static const struct leat_field fixed[] = {{"label", LEAT_U8, 1, {2}}};
static const char *const takes_label[] = {"label"};

static const struct leat_function functions[] = {
	{.name = "change", .run = change, .gives = changed, .give_count = 3},
	{.name = "only", .run = change, .gives = changed, .give_count = 3, .drops = true},
	{.name = "refuse", .run = refuse, .takes = takes_label, .take_count = 1, .gives = one_label, .give_count = 1},
	{.name = "forget", .run = forget, .gives = changed, .give_count = 3},
	{.name = "grow", .run = grow, .takes = takes_label, .take_count = 1, .gives = fixed, .give_count = 1},
};

static void
map_options(struct leat_options *options)
{
	trace_options(options);
	options->functions = functions;
	options->function_count = sizeof functions / sizeof *functions;
}

static const char *
spec_of(const char *rest)
{
	static char spec[900];

	snprintf(spec, sizeof spec, "%s | example(image=bytes, label=int64, tokens=int64[]) | %s", data_source(&data),
	         rest);
	return spec;
}

static enum leat_status
open_error(const char *rest, const struct leat_options *options, struct leat_err *err)
{
	struct leat_feed *feed;
	enum leat_status status = leat_open(spec_of(rest), options, &feed, err);

	leat_close(feed);
	return status;
}

/* ---- on the worker's thread ---- */

static void
functions_see_the_sample_and_change_it(void **state)
{
	struct leat_options options;
	struct leat_tensor label, tokens, noise;
	struct leat_batch *batch;
	struct leat_feed *feed;

	(void)state;
	map_options(&options);
	feed = trace_open(spec_of("drop(image) | map(change) | batch(10)"), &options);
	assert_int_equal(leat_field_count(feed), 3);
	assert_string_equal(leat_field_at(feed, 0)->name, "label");
	assert_string_equal(leat_field_at(feed, 1)->name, "tokens");
	assert_string_equal(leat_field_at(feed, 2)->name, "noise");
	assert_int_equal(leat_next(feed, &batch, NULL), LEAT_OK);
	leat_batch_field(batch, "label", &label, NULL);
	leat_batch_field(batch, "tokens", &tokens, NULL);
	leat_batch_field(batch, "noise", &noise, NULL);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(((int64_t *)label.data)[i], 10 * i);
		assert_int_equal(tokens.offsets[i + 1] - tokens.offsets[i], 2 * (i % 7));
	}
	assert_true(((float *)noise.data)[0] != ((float *)noise.data)[2]);
	leat_release(batch);
	leat_close(feed);
	feed = trace_open(spec_of("map(only) | batch(10)"), &options);
	assert_int_equal(leat_field_count(feed), 3);
	leat_close(feed);
}

static void
compare(const char *rest, struct leat_options *options)
{
	struct trace one, other, joined = {0};

	options->threads = 1;
	trace_run(&one, spec_of(rest), options);
	assert_int_equal(one.status, LEAT_DONE);
	for (options->threads = 2; options->threads <= 4; options->threads++) {
		trace_run(&other, spec_of(rest), options);
		trace_compare(&one, &other, rest);
		trace_free(&other);
	}
	options->threads = 2;
	for (options->rank = 0, options->world = 2; options->rank < 2; options->rank++) {
		trace_run(&other, spec_of(rest), options);
		trace_join(&joined, &other);
		trace_free(&other);
	}
	options->rank = 0;
	options->world = 1;
	trace_compare_samples(&one, &joined, rest);
	trace_free(&one);
	trace_free(&joined);
}

static void
batches_do_not_depend_on_threads_or_ranks(void **state)
{
	static const char *const rests[] = {
		"map(change, random=true) | shuffle | batch(4)",
		"shuffle | map(only, random=true) | map(change) | batch(6)",
		"map(change, version='1', random=true) | cache | shuffle | map(only) | batch(4)",
		"decode | resize(8, 8) | random_flip | map(change, random=true) | random_brightness(0.1) | batch(4)",
	};
	struct leat_options options;

	(void)state;
	map_options(&options);
	for (size_t i = 0; i < sizeof rests / sizeof *rests; i++)
		compare(rests[i], &options);
}

/* Upstream of a cache, random numbers belong to the sample: all epochs see the same. Without prefetch, no epoch begins
 * before the one before it is cached. */
static void
a_cache_keeps_what_functions_made(void **state)
{
	struct leat_options options;
	struct leat_function counting[] = {functions[0]};
	atomic_int calls = 0;
	struct trace trace;

	(void)state;
	map_options(&options);
	counting[0].arg = &calls;
	options.functions = counting;
	options.function_count = 1;
	options.epochs = 3;
	trace_run(&trace, spec_of("map(change, version='1', random=true) | cache | batch(37) | prefetch(0)"), &options);
	assert_int_equal(trace.samples, 3 * 37);
	assert_int_equal(atomic_load(&calls), 37);
	assert_memory_equal(trace.sample[5].hash, trace.sample[5 + 37].hash, LEAT_SHA256_BYTES);
	trace_free(&trace);
}

static void
bad_samples_of_functions_are_skipped_or_replaced(void **state)
{
	struct leat_options options;
	struct leat_function other[] = {functions[2]};
	enum leat_status status = LEAT_IO;
	struct trace trace = {0};
	struct leat_feed *feed;

	(void)state;
	map_options(&options);
	options.epochs = 1;
	options.on_error = LEAT_ON_ERROR_SKIP;
	feed = trace_open(spec_of("map(refuse) | batch(5)"), &options);
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.samples, 37 - 5); /* 3, 10, 17, 24, 31 */
	assert_int_equal(leat_bad_count(feed), 5);
	assert_int_equal(leat_bad_at(feed, 1)->position, 10);
	assert_string_equal(leat_bad_at(feed, 1)->reason, "map: refuse: no 10");
	leat_close(feed);
	trace_free(&trace);
	other[0].arg = &status; /* LEAT_IO of a function is about the sample, too */
	options.functions = other;
	options.function_count = 1;
	trace_run(&trace, spec_of("map(refuse) | batch(5)"), &options);
	assert_int_equal(trace.samples, 37 - 5);
	trace_free(&trace);
	map_options(&options);
	options.epochs = 1;
	options.on_error = LEAT_ON_ERROR_REPLACE;
	compare("map(refuse) | batch(6)", &options);
}

static void
a_function_that_fails_names_the_sample(void **state)
{
	struct leat_options options;
	struct leat_function other[] = {functions[2]};
	enum leat_status status = LEAT_INVALID;
	struct trace trace;

	(void)state;
	map_options(&options);
	trace_run(&trace, spec_of("map(refuse) | batch(5)"), &options);
	assert_int_equal(trace.status, LEAT_FUNCTION);
	assert_non_null(strstr(trace.err.text, "(sample 3): position 3 of epoch 0: map: refuse: no 3"));
	trace_free(&trace);
	/* A status that is not about the sample ends the feed, whatever on_error says. */
	other[0].arg = &status;
	options.functions = other;
	options.function_count = 1;
	options.on_error = LEAT_ON_ERROR_SKIP;
	trace_run(&trace, spec_of("map(refuse) | batch(5)"), &options);
	assert_int_equal(trace.status, LEAT_INVALID);
	trace_free(&trace);
}

static void
results_must_be_as_declared(void **state)
{
	struct leat_options options;
	struct trace trace;

	(void)state;
	map_options(&options);
	trace_run(&trace, spec_of("map(forget) | batch(5)"), &options);
	assert_int_equal(trace.status, LEAT_INVALID);
	assert_non_null(strstr(trace.err.text, "'forget' did not give field 'label'"));
	trace_free(&trace);
	options.on_error = LEAT_ON_ERROR_SKIP;
	trace_run(&trace, spec_of("skip(5) | map(grow) | batch(5)"), &options);
	assert_int_equal(trace.status, LEAT_SPEC);
	assert_non_null(strstr(trace.err.text, "field 'label' is uint8[5], but was declared as uint8[2]"));
	trace_free(&trace);
}

static void
mistakes_are_named_at_open(void **state)
{
	struct leat_function wrong[] = {functions[0]};
	struct leat_field field = {"x", LEAT_U8, 7, {0}};
	struct leat_options options;
	struct leat_err err;

	(void)state;
	map_options(&options);
	assert_int_equal(open_error("map(chance) | batch(5)", &options, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "map: there is no function 'chance', did you mean 'change'?"));
	assert_int_equal(open_error("map(change) | batch(5)", NULL, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "leat_options.functions in C"));
	assert_int_equal(open_error("map(change) | cache | batch(5)", &options, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "give map('change') a version"));
	assert_int_equal(open_error("drop(label) | map(refuse) | batch(5)", &options, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "'label'"));
	options.functions = wrong;
	options.function_count = 1;
	wrong[0].gives = &field;
	wrong[0].give_count = 1;
	assert_int_equal(open_error("map(change) | batch(5)", &options, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "field 'x' has 7 dimensions"));
	field = (struct leat_field){"", LEAT_U8, 0, {0}};
	assert_int_equal(open_error("map(change) | batch(5)", &options, &err), LEAT_SPEC);
	wrong[0].give_count = 0;
	wrong[0].drops = true;
	assert_int_equal(open_error("map(change) | batch(5)", &options, &err), LEAT_SPEC);
	assert_non_null(strstr(err.text, "no field is left"));
	wrong[0].run = NULL;
	wrong[0].drops = false;
	assert_int_equal(open_error("map(change) | batch(5)", &options, &err), LEAT_INVALID);
	assert_non_null(strstr(err.text, "leat_options.processes"));
}

static void
checkpoint_of(const char *rest, const struct leat_options *options, char **json)
{
	struct leat_feed *feed = trace_open(spec_of(rest), options);

	assert_int_equal(leat_save(feed, json, NULL), LEAT_OK);
	leat_close(feed);
}

static enum leat_status
restore_into(const char *rest, const struct leat_options *options, const char *json)
{
	struct leat_feed *feed = trace_open(spec_of(rest), options);
	enum leat_status status = leat_restore(feed, json, NULL);

	leat_close(feed);
	return status;
}

/* With a version the name does not count; without one it does. */
static void
checkpoints_know_the_version_or_else_the_name(void **state)
{
	struct leat_function renamed[] = {functions[0], functions[0]};
	struct leat_options options;
	char *json;

	(void)state;
	map_options(&options);
	renamed[1].name = "renamed";
	options.functions = renamed;
	options.function_count = 2;
	checkpoint_of("map(change, version='1') | batch(5)", &options, &json);
	assert_int_equal(restore_into("map(renamed, version='1') | batch(5)", &options, json), LEAT_OK);
	assert_int_equal(restore_into("map(change, version='2') | batch(5)", &options, json), LEAT_MISMATCH);
	free(json);
	checkpoint_of("map(change) | batch(5)", &options, &json);
	assert_int_equal(restore_into("map(renamed) | batch(5)", &options, json), LEAT_MISMATCH);
	assert_int_equal(restore_into("map(change) | batch(5)", &options, json), LEAT_OK);
	free(json);
}

/* ---- in another process ---- */

enum { MOST = 3 };

/* How a child behaves. */
enum manner { HONEST, DIES, HANGS, LIES_OFFSET, LIES_SHAPE, LIES_COUNT, LIES_KIND, LIES_SHORT, REFUSES, WRONG, HUGE };

struct children {
	struct leat_process process[MOST];
	int count;
};

static void
answer(int socket, uint32_t kind, uint32_t count, uint64_t a, uint64_t b)
{
	struct leat_message message = {.kind = kind, .count = count, .a = a, .b = b};

	if (send(socket, &message, sizeof message, MSG_NOSIGNAL) < 0)
		_exit(0);
}

/* Gives label + 1 and, with image, its bytes twice. */
static void
work_honestly(unsigned char *base, size_t used, struct leat_exchange_field out[2], const char *text)
{
	struct leat_exchange_call *call = (void *)base;
	struct leat_exchange_field *in = (void *)(base + sizeof *call);
	size_t at = used + 2 * sizeof *out;

	(void)text;
	for (uint32_t i = 0; i < call->count; i++) {
		if (strcmp(in[i].name, "label") == 0) {
			++*(int64_t *)(base + in[i].at); /* in place */
			out[0] = in[i];
		} else if (strcmp(in[i].name, "image") == 0) {
			out[1] = in[i];
			out[1].at = at;
			out[1].shape[0] *= 2;
			memcpy(base + at, base + in[i].at, (size_t)in[i].shape[0]);
			memcpy(base + at + in[i].shape[0], base + in[i].at, (size_t)in[i].shape[0]);
		}
	}
	memcpy(base + used, out, 2 * sizeof *out);
}

static void
serve(int socket, unsigned char *const base[2], const size_t size[2], enum manner manner)
{
	static const char text[] = "what a label";
	struct leat_message message;
	struct leat_exchange_field out[2] = {0};

	for (int calls = 0; recv(socket, &message, sizeof message, 0) == (ssize_t)sizeof message; calls++) {
		unsigned char *at = base[message.where];
		uint64_t used = message.a, need;

		if (manner == DIES && calls == 2)
			_exit(3);
		if (manner == HANGS && calls == 2)
			pause();
		need = used + 2 * sizeof *out + 2 * used;
		if (need > size[message.where] || (manner == HUGE && calls == 2)) {
			answer(socket, LEAT_MESSAGE_TOO_LARGE, 0, need, 0);
			continue;
		}
		work_honestly(at, used, out, text);
		if (manner == LIES_SHAPE)
			out[0].ndim = 1;
		if (manner == LIES_OFFSET)
			out[1].at = size[0] - 1;
		memcpy(at + used, out, sizeof out);
		memcpy(at, text, sizeof text);
		if (manner == REFUSES && calls % 2 == 1)
			answer(socket, LEAT_MESSAGE_FAILED, 0, 0, sizeof text - 1);
		else if (manner == WRONG)
			answer(socket, LEAT_MESSAGE_WRONG, 0, 0, sizeof text - 1);
		else if (manner == LIES_SHORT)
			send(socket, text, sizeof text, MSG_NOSIGNAL);
		else
			answer(socket, manner == LIES_KIND ? 77 : LEAT_MESSAGE_DONE, manner == LIES_COUNT ? 1000000 : 2,
			       used, 0);
	}
	_exit(0);
}

static void
live(int socket, enum manner manner)
{
	struct leat_message message;
	struct iovec part = {&message, sizeof message};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(2 * sizeof(int))];
	} control;
	struct msghdr all = {.msg_iov = &part,
	                     .msg_iovlen = 1,
	                     .msg_control = control.bytes,
	                     .msg_controllen = sizeof control.bytes};
	unsigned char *base[2];
	size_t size[2];
	int fds[2];

	if (recvmsg(socket, &all, 0) != (ssize_t)sizeof message || message.kind != LEAT_MESSAGE_OPEN)
		_exit(0);
	memcpy(fds, CMSG_DATA(CMSG_FIRSTHDR(&all)), sizeof fds);
	size[0] = message.a;
	size[1] = message.b;
	for (int i = 0; i < 2; i++)
		base[i] = mmap(NULL, size[i], PROT_READ | PROT_WRITE, MAP_SHARED, fds[i], 0);
	serve(socket, base, size, manner);
}

static void
children_start(struct children *children, int count, enum manner manner, enum manner first)
{
	children->count = count;
	for (int i = 0; i < count; i++) {
		int pair[2], pid;

		assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			alarm(60);
			close(pair[0]);
			live(pair[1], i == 0 ? first : manner);
			_exit(0);
		}
		close(pair[1]);
		children->process[i] = (struct leat_process){pid, pair[0]};
	}
}

static void
children_end(struct children *children)
{
	for (int i = 0; i < children->count; i++) {
		close(children->process[i].socket);
		kill(children->process[i].pid, SIGKILL);
		assert_int_equal(waitpid(children->process[i].pid, NULL, 0), children->process[i].pid);
	}
}

static const struct leat_field sent[] = {{"label", LEAT_I64, 0, {0}}, {"image", LEAT_U8, 1, {-1}}};
static const struct leat_function remote[] = {{.name = "far", .gives = sent, .give_count = 2, .drops = true}};

static void
child_options(struct leat_options *options, const struct children *children)
{
	trace_options(options);
	options->functions = remote;
	options->function_count = 1;
	options->threads = (unsigned)children->count;
	options->processes = children->process;
	options->process_count = (size_t)children->count;
}

static void
run_children(struct trace *trace, const char *rest, int count, enum manner manner, enum leat_on_error on_error)
{
	struct leat_options options;
	struct children children;

	children_start(&children, count, manner, manner);
	child_options(&options, &children);
	options.on_error = on_error;
	alarm(60); /* a test that hangs is killed */
	trace_run(trace, spec_of(rest), &options);
	alarm(0);
	children_end(&children);
}

static void
processes_give_the_same_as_one(void **state)
{
	struct trace one, other;

	(void)state;
	run_children(&one, "map(far) | shuffle | batch(4)", 1, HONEST, LEAT_ON_ERROR_FAIL);
	assert_int_equal(one.status, LEAT_DONE);
	assert_int_equal(one.samples, 37);
	for (int count = 2; count <= MOST; count++) {
		run_children(&other, "map(far) | shuffle | batch(4)", count, HONEST, LEAT_ON_ERROR_FAIL);
		trace_compare(&one, &other, "processes");
		trace_free(&other);
	}
	trace_free(&one);
}

/* Samples that do not fit go through the memory for large ones. */
static void
large_samples_get_through(void **state)
{
	struct trace one, other;

	(void)state;
	run_children(&one, "map(far) | batch(4)", 1, HONEST, LEAT_ON_ERROR_FAIL);
	run_children(&other, "map(far) | batch(4)", 2, HUGE, LEAT_ON_ERROR_FAIL);
	trace_compare(&one, &other, "large");
	trace_free(&one);
	trace_free(&other);
}

static void
a_process_that_ends_fails_the_feed_and_is_no_bad_sample(void **state)
{
	struct trace trace;

	(void)state;
	for (int on_error = LEAT_ON_ERROR_FAIL; on_error <= LEAT_ON_ERROR_REPLACE; on_error++) {
		run_children(&trace, "map(far) | batch(4)", 2, DIES, (enum leat_on_error)on_error);
		assert_int_equal(trace.status, LEAT_WORKER);
		assert_non_null(strstr(trace.err.text, "exited with status 3; open the feed again"));
		trace_free(&trace);
	}
}

static void
a_process_may_refuse_a_sample(void **state)
{
	struct trace trace;

	(void)state;
	run_children(&trace, "map(far) | batch(4)", 1, REFUSES, LEAT_ON_ERROR_SKIP);
	assert_int_equal(trace.status, LEAT_DONE);
	assert_int_equal(trace.samples, 19); /* every other one */
	trace_free(&trace);
	run_children(&trace, "map(far) | batch(4)", 1, REFUSES, LEAT_ON_ERROR_FAIL);
	assert_int_equal(trace.status, LEAT_FUNCTION);
	assert_non_null(strstr(trace.err.text, "position 1 of epoch 0: map: far: what a label"));
	trace_free(&trace);
	run_children(&trace, "map(far) | batch(4)", 1, WRONG, LEAT_ON_ERROR_SKIP);
	assert_int_equal(trace.status, LEAT_SPEC);
	trace_free(&trace);
}

static void
nonsense_from_a_process_is_an_error(void **state)
{
	static const enum manner lies[] = {LIES_OFFSET, LIES_SHAPE, LIES_COUNT, LIES_KIND, LIES_SHORT};
	struct trace trace;

	(void)state;
	for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
		run_children(&trace, "map(far) | batch(4)", 2, lies[i], LEAT_ON_ERROR_SKIP);
		assert_int_equal(trace.status, LEAT_WORKER);
		trace_free(&trace);
	}
}

/* A process that never answers cannot keep a feed from closing, and one that is killed is noticed. */
static void
a_process_that_hangs_does_not_hang_close(void **state)
{
	struct leat_options options;
	struct children children;
	struct leat_batch *batch;
	struct leat_feed *feed;
	struct leat_err err;

	(void)state;
	for (int killed = 0; killed < 2; killed++) {
		children_start(&children, 1, HANGS, HANGS);
		child_options(&options, &children);
		alarm(60);
		feed = trace_open(spec_of("map(far) | batch(37)"), &options);
		assert_int_equal(leat_next_within(feed, 1000 * 1000, &batch, &err), LEAT_TIMEOUT);
		if (killed) {
			kill(children.process[0].pid, SIGKILL);
			assert_int_equal(leat_next(feed, &batch, &err), LEAT_WORKER);
			assert_non_null(strstr(err.text, "was killed by signal 9"));
		}
		leat_close(feed);
		alarm(0);
		children_end(&children);
	}
}

/* Restoring interrupts calls; their answers, which come later, are not taken for those of the next ones. */
static void
restoring_in_the_middle_gives_the_same_batches(void **state)
{
	struct trace whole, again = {0};
	struct leat_options options;
	struct children children;
	struct leat_feed *feed;
	char *json;

	(void)state;
	run_children(&whole, "map(far) | shuffle | batch(4)", 1, HONEST, LEAT_ON_ERROR_FAIL);
	children_start(&children, MOST, HONEST, HONEST);
	child_options(&options, &children);
	feed = trace_open(spec_of("map(far) | shuffle | batch(4)"), &options);
	assert_int_equal(leat_save(feed, &json, NULL), LEAT_OK);
	for (int i = 0; i < (TEST_SLOW ? 20 : 100); i++)
		assert_int_equal(leat_restore(feed, json, NULL), LEAT_OK);
	trace_take(&again, feed, 0);
	trace_compare(&whole, &again, "restored");
	leat_close(feed);
	children_end(&children);
	free(json);
	trace_free(&whole);
	trace_free(&again);
}

static void
the_memory_limit_covers_shared_memory(void **state)
{
	struct leat_options options;
	struct children children;
	struct leat_stats stats;
	struct leat_feed *feed;
	struct trace trace = {0};

	(void)state;
	children_start(&children, 2, HONEST, HONEST);
	child_options(&options, &children);
	options.memory = trace_least_memory(spec_of("map(far) | batch(4)"), &options);
	feed = trace_open(spec_of("map(far) | batch(4)"), &options);
	trace_take(&trace, feed, 0);
	assert_int_equal(trace.status, LEAT_DONE);
	leat_stats(feed, &stats);
	assert_true(stats.memory_peak <= options.memory && stats.memory >= 2 * feed->budget.exchange);
	leat_close(feed);
	children_end(&children);
	trace_free(&trace);
}

static void
every_request_may_fail(void **state)
{
	struct leat_options options;
	struct leat_feed *feed;
	struct leat_err err;
	enum leat_status status;
	long n = 0;

	(void)state;
	do {
		struct children children;

		children_start(&children, 1, HONEST, HONEST);
		child_options(&options, &children);
		status =
			leat_feed_open(spec_of("map(far) | batch(4)"), &options, LEAT_BATCH_REQUIRED, n++, &feed, &err);
		if (status != LEAT_OK && status != LEAT_NOMEM && status != LEAT_LIMIT)
			fail_msg("%s", err.text);
		leat_close(feed);
		children_end(&children);
	} while (status != LEAT_OK);
	assert_true(n > 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(functions_see_the_sample_and_change_it),
		cmocka_unit_test(batches_do_not_depend_on_threads_or_ranks),
		cmocka_unit_test(a_cache_keeps_what_functions_made),
		cmocka_unit_test(bad_samples_of_functions_are_skipped_or_replaced),
		cmocka_unit_test(a_function_that_fails_names_the_sample),
		cmocka_unit_test(results_must_be_as_declared),
		cmocka_unit_test(mistakes_are_named_at_open),
		cmocka_unit_test(checkpoints_know_the_version_or_else_the_name),
		cmocka_unit_test(processes_give_the_same_as_one),
		cmocka_unit_test(large_samples_get_through),
		cmocka_unit_test(a_process_that_ends_fails_the_feed_and_is_no_bad_sample),
		cmocka_unit_test(a_process_may_refuse_a_sample),
		cmocka_unit_test(nonsense_from_a_process_is_an_error),
		cmocka_unit_test(a_process_that_hangs_does_not_hang_close),
		cmocka_unit_test(restoring_in_the_middle_gives_the_same_batches),
		cmocka_unit_test(the_memory_limit_covers_shared_memory),
		cmocka_unit_test(every_request_may_fail),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
