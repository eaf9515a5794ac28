/* process.c - see process.h */
#include "feed/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/size.h"
#include "op/map.h"

enum { ALIGN = 64, END_WAIT_MS = 2000, MAX_TEXT = 900 };

struct shared {
	unsigned char *base;
	size_t size;
	int fd;
};

struct process {
	int pid, socket;
	int pidfd; /* -1: the kernel has none (before Linux 5.3); then the socket tells when the process ends */
	struct shared memory;
	bool busy;       /* a call is under way */
	bool busy_large; /* ... in the large memory */
};

struct leat_processes {
	struct leat_mem *mem;
	struct shared large;
	int stop; /* eventfd: readable while interrupted */
	unsigned count;
	struct process one[];
};

static size_t
align(size_t n)
{
	return (n + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

size_t
leat_exchange_overhead(int fields)
{
	size_t table = align(sizeof(struct leat_exchange_call)) +
	               align((size_t)fields * (sizeof(struct leat_exchange_field) + ALIGN));

	return 2 * table + 4096; /* and the text of an error */
}

/* ---- open and close ---- */

enum leat_status
leat_processes_check(const struct leat_options *options, struct leat_err *err)
{
	if (!options->processes || options->process_count == 0)
		return leat_fail(err, LEAT_INVALID, "a function without `run` needs leat_options.processes");
	if (options->process_count != options->threads)
		return leat_fail(err, LEAT_INVALID, "%zu processes for %u threads: there must be one per thread",
		                 options->process_count, options->threads);
	return LEAT_OK;
}

static enum leat_status
open_shared(struct shared *shared, size_t size, struct leat_mem *mem, struct leat_err *err)
{
	shared->base = leat_map_shared(mem, size, &shared->fd);
	if (!shared->base)
		return leat_fail_mem(err, mem, size, "memory shared with a process");
	shared->size = size;
	return LEAT_OK;
}

static void
close_shared(struct shared *shared, struct leat_mem *mem)
{
	leat_unmap(mem, shared->base, shared->size);
	if (shared->fd >= 0)
		close(shared->fd);
	*shared = (struct shared){.fd = -1};
}

static enum leat_status
send_memory(const struct process *process, const struct shared *large, struct leat_err *err)
{
	struct leat_message message = {.kind = LEAT_MESSAGE_OPEN, .a = process->memory.size, .b = large->size};
	struct iovec part = {&message, sizeof message};
	const int fds[2] = {process->memory.fd, large->fd};
	union {
		struct cmsghdr header;
		char bytes[CMSG_SPACE(sizeof fds)];
	} control = {0};
	struct msghdr all = {.msg_iov = &part,
	                     .msg_iovlen = 1,
	                     .msg_control = control.bytes,
	                     .msg_controllen = sizeof control.bytes};

	control.header =
		(struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fds), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
	memcpy(CMSG_DATA(&control.header), fds, sizeof fds);
	if (sendmsg(process->socket, &all, MSG_NOSIGNAL) != (ssize_t)sizeof message)
		return leat_fail(err, LEAT_WORKER, "worker process %d cannot be reached: %s", process->pid,
		                 strerror(errno));
	return LEAT_OK;
}

static enum leat_status
open_process(struct process *process, const struct leat_process *given, size_t size, const struct shared *large,
             struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status = open_shared(&process->memory, size, mem, err);

	process->pid = given->pid;
	process->socket = given->socket;
	process->pidfd = (int)syscall(SYS_pidfd_open, given->pid, 0);
	return status == LEAT_OK ? send_memory(process, large, err) : status;
}

enum leat_status
leat_processes_open(struct leat_processes **out, const struct leat_options *options, size_t each, size_t large,
                    struct leat_mem *mem, struct leat_err *err)
{
	size_t size = sizeof(struct leat_processes) + options->process_count * sizeof(struct process);
	struct leat_processes *p = leat_alloc(mem, size);
	enum leat_status status;

	*out = NULL;
	if (!p)
		return leat_fail_mem(err, mem, size, "worker processes");
	p->mem = mem;
	p->large.fd = -1;
	p->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	status = p->stop < 0 ? leat_fail_errno(err, errno, "eventfd") : open_shared(&p->large, large, mem, err);
	for (size_t i = 0; i < options->process_count; i++)
		p->one[i] = (struct process){.pidfd = -1, .memory.fd = -1};
	while (p->count < options->process_count && status == LEAT_OK) {
		status = open_process(&p->one[p->count], &options->processes[p->count], each, &p->large, mem, err);
		p->count++;
	}
	if (status == LEAT_OK)
		*out = p;
	else
		leat_processes_close(p);
	return status;
}

void
leat_processes_close(struct leat_processes *p)
{
	if (!p)
		return;
	for (unsigned i = 0; i < p->count; i++) {
		if (p->one[i].pidfd >= 0)
			close(p->one[i].pidfd);
		close_shared(&p->one[i].memory, p->mem);
	}
	close_shared(&p->large, p->mem);
	if (p->stop >= 0)
		close(p->stop);
	leat_free(p->mem, p);
}

/* ---- waiting ---- */

/* How it ended, if it is known: someone else may have asked first. Does not reap it. */
static void
describe_end(const struct process *process, char *buf, size_t cap)
{
	struct pollfd gone = {.fd = process->pidfd, .events = POLLIN};
	siginfo_t info = {0};

	if (process->pidfd >= 0) /* its socket closes a little earlier than it ends */
		poll(&gone, 1, END_WAIT_MS);
	snprintf(buf, cap, "ended");
	if (waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0)
		return;
	if (info.si_code == CLD_EXITED)
		snprintf(buf, cap, "exited with status %d", info.si_status);
	else
		snprintf(buf, cap, "was killed by signal %d (%s)%s", info.si_status, strsignal(info.si_status),
		         info.si_status == SIGKILL ? ", perhaps because the system ran out of memory" : "");
}

static enum leat_status
fail_ended(const struct process *process, struct leat_err *err)
{
	char how[160];

	describe_end(process, how, sizeof how);
	return leat_fail(err, LEAT_WORKER, "worker process %d %s; open the feed again to continue", process->pid, how);
}

static enum leat_status
fail_answer(const struct process *process, struct leat_err *err)
{
	return leat_fail(err, LEAT_WORKER, "worker process %d sent an answer that makes no sense", process->pid);
}

/* Waits for the answer to the call under way. Without `stop`, it is not interrupted. */
static enum leat_status
wait_answer(struct process *process, int stop, struct leat_message *answer, struct leat_err *err)
{
	struct pollfd fds[] = {
		{.fd = process->socket, .events = POLLIN},
		{.fd = process->pidfd, .events = POLLIN},
		{.fd = stop, .events = POLLIN},
	};

	for (;;) {
		ssize_t n;

		if (poll(fds, 3, -1) < 0 && errno != EINTR)
			return leat_fail_errno(err, errno, "poll");
		n = recv(process->socket, answer, sizeof *answer, MSG_DONTWAIT);
		if (n == (ssize_t)sizeof *answer) {
			process->busy = process->busy_large = false;
			return LEAT_OK;
		}
		if (n > 0) {
			process->busy = process->busy_large = false;
			return fail_answer(process, err);
		}
		if (n == 0 || (errno != EAGAIN && errno != EINTR) || fds[1].revents)
			return fail_ended(process, err);
		if (fds[2].revents)
			return leat_fail(err, LEAT_CANCELLED, "the feed was stopped");
	}
}

void
leat_processes_interrupt(struct leat_processes *p, bool interrupt)
{
	uint64_t count = 1;
	struct leat_message ignored;

	if (!p)
		return;
	if (interrupt) {
		if (write(p->stop, &count, sizeof count) < 0)
			return; /* it is readable already */
		return;
	}
	if (read(p->stop, &count, sizeof count) < 0)
		return; /* it was not interrupted */
	/* Another thread may need the large memory first. If the process has ended, the next call reports it. */
	for (unsigned i = 0; i < p->count; i++)
		if (p->one[i].busy_large)
			wait_answer(&p->one[i], -1, &ignored, NULL);
}

/* ---- the sample: there ---- */

static enum leat_status
fail_too_large(size_t wanted, const struct shared *memory, struct leat_err *err)
{
	char want[32], all[32];

	return leat_fail(err, LEAT_LIMIT,
	                 "a sample and its result need %s shared with the process, but there is only %s; "
	                 "raise memory=",
	                 leat_format_size_up(want, sizeof want, wanted),
	                 leat_format_size(all, sizeof all, memory->size));
}

static size_t
value_bytes(const struct leat_value *value)
{
	struct leat_datum datum = {.dtype = value->dtype, .ndim = value->ndim};

	memcpy(datum.shape, value->shape, sizeof datum.shape);
	return leat_datum_bytes(&datum);
}

static enum leat_status
write_sample(const struct shared *memory, const struct leat_map_call *call, size_t *used, struct leat_err *err)
{
	struct leat_exchange_call head = {
		call->seed,   call->epoch,          call->position, call->sample, {call->random[0], call->random[1]},
		call->number, (uint32_t)call->count};
	size_t at = align(sizeof head + (size_t)call->count * sizeof(struct leat_exchange_field));

	if (at > memory->size)
		return fail_too_large(at, memory, err);
	memcpy(memory->base, &head, sizeof head);
	for (int i = 0; i < call->count; i++) {
		const struct leat_value *value = &call->value[i];
		struct leat_exchange_field field = {.dtype = (int32_t)value->dtype, .ndim = value->ndim, .at = at};
		size_t bytes = value_bytes(value);

		if (bytes > memory->size - at)
			return fail_too_large(bytes > SIZE_MAX / 2 ? bytes : at + bytes, memory, err);
		memcpy(field.name, value->name, sizeof field.name); /* of a struct leat_field */
		memcpy(field.shape, value->shape, sizeof field.shape);
		memcpy(memory->base + sizeof head + (size_t)i * sizeof field, &field, sizeof field);
		if (bytes > 0)
			memcpy(memory->base + at, value->data, bytes);
		at = align(at + bytes);
		if (at > memory->size)
			at = memory->size;
	}
	*used = at;
	return LEAT_OK;
}

/* ---- and back ---- */

static enum leat_status
read_field(const struct process *process, const struct shared *memory, const struct leat_map_call *call, int i,
           const struct leat_exchange_field *from, struct leat_err *err)
{
	const struct leat_field *declared = &leat_map_function(call)->gives[i];
	struct leat_datum datum = {.dtype = declared->dtype, .ndim = declared->ndim};
	size_t bytes;
	void *to;

	if (from->dtype != (int32_t)declared->dtype || from->ndim != declared->ndim)
		return fail_answer(process, err);
	memcpy(datum.shape, from->shape, sizeof datum.shape);
	for (int k = 0; k < datum.ndim; k++)
		if (datum.shape[k] < 0)
			return fail_answer(process, err);
	bytes = leat_datum_bytes(&datum);
	if (from->at > memory->size || bytes > memory->size - from->at)
		return fail_answer(process, err);
	to = leat_map_output(call, i, datum.shape, err);
	if (!to)
		return err ? err->status : LEAT_LIMIT;
	if (bytes > 0)
		memcpy(to, memory->base + from->at, bytes);
	return LEAT_OK;
}

static enum leat_status
read_fields(const struct process *process, const struct shared *memory, const struct leat_map_call *call,
            const struct leat_message *answer, struct leat_err *err)
{
	int count = leat_map_function(call)->give_count;
	size_t table = (size_t)count * sizeof(struct leat_exchange_field);
	enum leat_status status = LEAT_OK;

	if (answer->count != (uint32_t)count || answer->a > memory->size || table > memory->size - answer->a)
		return fail_answer(process, err);
	for (int i = 0; i < count && status == LEAT_OK; i++) {
		struct leat_exchange_field field;

		memcpy(&field, memory->base + answer->a + (size_t)i * sizeof field, sizeof field);
		status = read_field(process, memory, call, i, &field, err);
	}
	return status;
}

static enum leat_status
read_text(const struct process *process, const struct shared *memory, const struct leat_message *answer,
          enum leat_status status, struct leat_err *err)
{
	if (answer->b > MAX_TEXT || answer->a > memory->size || answer->b > memory->size - answer->a)
		return fail_answer(process, err);
	return leat_fail(err, status, "%.*s", (int)answer->b, (const char *)memory->base + answer->a);
}

static enum leat_status
read_answer(const struct process *process, const struct shared *memory, const struct leat_map_call *call,
            const struct leat_message *answer, struct leat_err *err)
{
	switch (answer->kind) {
	case LEAT_MESSAGE_DONE:
		return read_fields(process, memory, call, answer, err);
	case LEAT_MESSAGE_FAILED:
		return read_text(process, memory, answer, LEAT_FUNCTION, err);
	case LEAT_MESSAGE_WRONG:
		return read_text(process, memory, answer, LEAT_SPEC, err);
	case LEAT_MESSAGE_TOO_LARGE:
		return fail_too_large((size_t)answer->a, memory, err);
	default:
		return fail_answer(process, err);
	}
}

enum leat_status
leat_processes_call(struct leat_processes *p, const struct leat_map_call *call, bool large, struct leat_err *err)
{
	struct process *process = &p->one[call->thread];
	const struct shared *memory = large ? &p->large : &process->memory;
	struct leat_message message = {.kind = LEAT_MESSAGE_CALL, .where = large};
	enum leat_status status = LEAT_OK;
	size_t used = 0;

	if (process->busy) /* with an interrupted call */
		status = wait_answer(process, p->stop, &message, err);
	if (status == LEAT_OK)
		status = write_sample(memory, call, &used, err);
	if (status != LEAT_OK)
		return status;
	message = (struct leat_message){.kind = LEAT_MESSAGE_CALL, .where = large, .a = used};
	if (send(process->socket, &message, sizeof message, MSG_NOSIGNAL) != (ssize_t)sizeof message)
		return fail_ended(process, err);
	process->busy = true;
	process->busy_large = large;
	status = wait_answer(process, p->stop, &message, err);
	return status == LEAT_OK ? read_answer(process, memory, call, &message, err) : status;
}
