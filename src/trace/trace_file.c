/* trace_file.c - see trace_file.h. All functions run on the recorder's thread, except opening and freeing. */
#include "trace/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "trace/trace_event.h"

enum {
	CHUNK = 128 * 1024,       /* written at once */
	ROOM = CHUNK + 64 * 1024, /* and what one event may take */
	EACH_NS = 1000000000,     /* written at least that often */
	MAX_ROWS = 1024,          /* of a lane whose spans overlap */
	TRACKS = 4096,            /* slots: twice the texts that a recorder keeps */
};

#define TAIL "\n]\n" /* after the last event, until the next one overwrites it */

/* Spans of a lane that overlap are spread over rows, as viewers want it: a span goes to the first row whose last span
 * ended before it began. They come in the order in which they end, so nothing else needs to be known. */
struct shown_lane {
	const char *name;
	bool overlaps;
	uint64_t *row_end; /* overlaps: of each row */
	int *row_tid;
	size_t rows, row_cap, tid_cap;
};

struct track {
	const char *name; /* compared by address */
	uint64_t values;
};

struct trace_file {
	struct leat_mem *mem;
	const struct leat_log *log;
	long pid;
	char *name, *path, *thin_path; /* as it was given; without links; the file that will replace it */
	int fd;
	uint64_t limit;
	struct leat_str out;               /* to be written at `end` */
	struct leat_str thin_in, thin_out; /* for thinning, when there may be no memory */
	uint64_t end;                      /* of the last event in the file */
	uint64_t written_ns;
	struct shown_lane *lane;
	size_t lanes, lane_cap;
	int tids;
	struct track *track;
	struct leat_thinning thinning[LEAT_CLASSES];
	uint64_t bytes[LEAT_CLASSES]; /* in the file */
	uint64_t dropped;             /* as the file says */
	uint64_t crowded;             /* spans for which there was no row */
	struct leat_err failure;      /* LEAT_OK: none */
};

static bool
has_failed(const struct trace_file *f)
{
	return f->failure.status != LEAT_OK;
}

/* Keeps the first failure, and says so once. The file ends with the last event that was written whole. */
static void
fail_file(struct trace_file *f, int errnum)
{
	if (has_failed(f))
		return;
	if (errnum == 0)
		leat_fail(&f->failure, LEAT_NOMEM, "out of memory for the trace '%s'", f->name);
	else
		leat_fail_errno_as(&f->failure, LEAT_IO, errnum, "cannot write the trace '%s'", f->name);
	leat_log(f->log, LEAT_LOG_WARN, "%s; the run goes on without it", f->failure.text);
	if (ftruncate(f->fd, (off_t)f->end) == 0 && pwrite(f->fd, TAIL, strlen(TAIL), (off_t)f->end) < 0)
		return; /* still readable: the closing bracket may be missing */
}

/* ---- the file ---- */

static bool
write_at(int fd, const char *bytes, size_t len, uint64_t at)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, bytes, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n == 0 ? ENOSPC : errno;
			return false;
		}
		bytes += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
}

/* Writes `out` and the tail, of which the next call overwrites the tail. */
static bool
write_out(int fd, struct leat_str *out, uint64_t *end)
{
	size_t len = out->len;

	if (len == 0)
		return true;
	leat_str_add(out, TAIL);
	if (out->failed || !write_at(fd, out->text, out->len, *end))
		return false;
	*end += len;
	out->len = 0;
	return true;
}

static void
flush(struct trace_file *f)
{
	if (!has_failed(f) && !write_out(f->fd, &f->out, &f->end))
		fail_file(f, f->out.failed ? 0 : errno);
}

static void
begin_event(struct trace_file *f)
{
	leat_str_addn(&f->out, ",\n", 2);
}

/* ---- thinning ---- */

/* A file that is written anew, line by line. */
struct copy {
	struct trace_file *f;
	int fd;
	struct leat_str *out;
	uint64_t end;
	struct leat_thinning thinning[LEAT_CLASSES]; /* of what is in the file */
	uint64_t bytes[LEAT_CLASSES];
};

static bool
copy_line(struct copy *c, const char *line, size_t len)
{
	uint64_t item;
	int class = leat_event_class(line, len, &item);

	if (class >= 0) {
		if (!leat_thinning_keeps(&c->thinning[class], item))
			return true;
		c->bytes[class] += len + 2;
	}
	leat_str_addn(c->out, c->end + c->out->len == 0 ? "[\n" : ",\n", 2);
	leat_str_addn(c->out, line, len);
	return !c->out->failed && (c->out->len < CHUNK || write_out(c->fd, c->out, &c->end));
}

/* A line without the comma at its end, if it is an event. */
static bool
copy_event(struct copy *c, const char *line, size_t len)
{
	if (len > 0 && line[len - 1] == ',')
		len--;
	return len < 2 || line[0] != '{' || copy_line(c, line, len);
}

/* Copies the lines in `in`, and keeps the beginning of one that is not complete. */
static bool
copy_lines(struct copy *c, struct leat_str *in)
{
	const char *line = in->text, *newline;
	size_t left = in->len;

	while ((newline = memchr(line, '\n', left)) != NULL) {
		size_t len = (size_t)(newline - line);

		if (!copy_event(c, line, len))
			return false;
		left -= len + 1;
		line = newline + 1;
	}
	memmove(in->text, line, left);
	in->len = left;
	return true;
}

static bool
copy_all(struct copy *c, struct leat_str *in)
{
	struct trace_file *f = c->f;
	uint64_t at = 0;

	in->len = c->out->len = 0;
	while (at < f->end) {
		size_t room = ROOM - in->len, want = f->end - at < room ? (size_t)(f->end - at) : room;
		ssize_t n = pread(f->fd, in->text + in->len, want, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			errno = n == 0 ? EIO : errno; /* somebody truncated it */
			return false;
		}
		at += (uint64_t)n;
		in->len += (size_t)n;
		if (!copy_lines(c, in))
			return false;
	}
	return copy_event(c, in->text, in->len) && write_out(c->fd, c->out, &c->end);
}

/* By item, the file is thinned like what will follow; by count, events that are gone do not count. */
static void
plan_copy(struct copy *c, const uint64_t *every_before)
{
	for (int i = 0; i < LEAT_CLASSES; i++) {
		const struct leat_thinning *now = &c->f->thinning[i];

		c->thinning[i].by_count = now->by_count;
		c->thinning[i].every = now->by_count ? now->every / every_before[i] : now->every;
	}
}

/* Locks a trace, to keep other recorders from writing it. File systems without locks have to do without. */
static bool
is_taken(int fd)
{
	return flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

/* Replaces the file by one with fewer events. Until that is complete, the old one stays. */
static bool
write_anew(struct trace_file *f, const uint64_t *every_before)
{
	struct copy c = {.f = f, .out = &f->thin_out};
	bool ok = false;
	int saved = 0;

	plan_copy(&c, every_before);
	unlink(f->thin_path);
	c.fd = open(f->thin_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	errno = c.fd < 0 ? errno : 0;
	if (c.fd >= 0 && copy_all(&c, &f->thin_in) && !is_taken(c.fd) && rename(f->thin_path, f->path) == 0)
		ok = true;
	saved = errno;
	if (ok) {
		close(f->fd);
		f->fd = c.fd;
		f->end = c.end;
		memcpy(f->bytes, c.bytes, sizeof f->bytes);
		return true;
	}
	if (c.fd >= 0) {
		unlink(f->thin_path);
		close(c.fd);
	}
	fail_file(f, saved);
	return false;
}

static const char *
class_name(int class)
{
	return class == LEAT_TAG_COUNT ? "track values" : leat_tag_name((enum leat_tag) class);
}

static void
say_thinned(struct trace_file *f, const uint64_t *before)
{
	for (int i = 0; i < LEAT_CLASSES; i++) {
		char text[128];

		if (f->thinning[i].every == before[i])
			continue;
		snprintf(text, sizeof text, "size limit: %s: 1 in %llu kept", class_name(i),
		         (unsigned long long)f->thinning[i].every);
		begin_event(f);
		leat_event_mark(&f->out, f->pid, leat_now(), text);
	}
}

/* Halves the largest classes until the file will be half full. */
static void
choose_thinning(struct trace_file *f)
{
	uint64_t bytes[LEAT_CLASSES], total = f->end;

	memcpy(bytes, f->bytes, sizeof bytes);
	while (total > f->limit / 2) {
		int largest = 0;

		for (int i = 1; i < LEAT_CLASSES; i++)
			if (bytes[i] > bytes[largest])
				largest = i;
		if (bytes[largest] < 2)
			return;
		f->thinning[largest].every *= 2;
		bytes[largest] /= 2;
		total -= bytes[largest];
	}
}

/* Classes of which thinning by item keeps far more than it should are thinned by count from now on. True: there are
 * such. */
static bool
judge_thinning(struct trace_file *f, const uint64_t *bytes, const uint64_t *every)
{
	bool switched = false;

	for (int i = 0; i < LEAT_CLASSES; i++)
		if (f->thinning[i].every > every[i] && f->bytes[i] > bytes[i] / 4 * 3 && !f->thinning[i].by_count)
			f->thinning[i].by_count = switched = true;
	return switched;
}

static void
thin(struct trace_file *f)
{
	uint64_t every[LEAT_CLASSES], bytes[LEAT_CLASSES];

	flush(f);
	for (int i = 0; i < LEAT_CLASSES; i++)
		every[i] = f->thinning[i].every;
	memcpy(bytes, f->bytes, sizeof bytes);
	choose_thinning(f);
	if (has_failed(f) || !write_anew(f, every))
		return;
	/* If nothing more can be thinned, it is full of the names of lanes. */
	if (!judge_thinning(f, bytes, every) && f->end > f->limit / 4 * 3)
		f->limit = 2 * f->end;
	say_thinned(f, every);
}

/* After each event. */
static void
end_event(struct trace_file *f)
{
	if (f->out.len >= CHUNK || f->end + f->out.len >= f->limit)
		flush(f);
	if (!has_failed(f) && f->end >= f->limit)
		thin(f);
}

/* ---- the sink ---- */

static void
name_row(struct trace_file *f, int tid, const char *name, long order)
{
	begin_event(f);
	leat_event_text(&f->out, f->pid, tid, "thread_name", "name", name);
	begin_event(f);
	leat_event_number(&f->out, f->pid, tid, "thread_sort_index", "sort_index", order);
	end_event(f);
}

/* A further row of a lane. False: there are too many, or there is no memory. */
static bool
add_row(struct trace_file *f, int number)
{
	struct shown_lane *lane = &f->lane[number];
	char name[96];

	if (LEAT_GROW(f->mem, lane->row_end, lane->row_cap, lane->rows + 1, MAX_ROWS, "a lane", NULL) != LEAT_OK ||
	    LEAT_GROW(f->mem, lane->row_tid, lane->tid_cap, lane->rows + 1, MAX_ROWS, "a lane", NULL) != LEAT_OK)
		return false;
	lane->row_tid[lane->rows] = ++f->tids;
	lane->row_end[lane->rows++] = 0;
	if (lane->rows == 1)
		snprintf(name, sizeof name, "%s", lane->name);
	else
		snprintf(name, sizeof name, "%s %zu", lane->name, lane->rows);
	name_row(f, f->tids, name, (long)number * MAX_ROWS + (long)lane->rows);
	return true;
}

static void
show_lane(void *arg, int number, const char *name, bool overlaps)
{
	struct trace_file *f = arg;
	struct shown_lane *lane;

	if (has_failed(f))
		return;
	if (LEAT_GROW(f->mem, f->lane, f->lane_cap, f->lanes + 1, SIZE_MAX, "lanes", NULL) != LEAT_OK) {
		fail_file(f, 0);
		return;
	}
	lane = &f->lane[f->lanes++];
	*lane = (struct shown_lane){.name = name, .overlaps = overlaps};
	if (!add_row(f, number))
		fail_file(f, 0);
}

/* -1: no row is free. */
static int
tid_of(struct trace_file *f, int number, const struct leat_span *span)
{
	struct shown_lane *lane = &f->lane[number];
	size_t row = 0;

	if (!lane->overlaps)
		return lane->row_tid[0];
	while (row < lane->rows && lane->row_end[row] > span->begin)
		row++;
	if (row == lane->rows && !add_row(f, number))
		return -1;
	lane->row_end[row] = span->end;
	return lane->row_tid[row];
}

static void
count_bytes(struct trace_file *f, int class, size_t before)
{
	f->bytes[class] += f->out.len - before;
	end_event(f);
}

static void
show_span(void *arg, int number, const struct leat_span *span, const char *name)
{
	struct trace_file *f = arg;
	int class = span->tag, tid;
	size_t before;

	if (has_failed(f) || !leat_thinning_keeps(&f->thinning[class], span->item))
		return;
	tid = tid_of(f, number, span);
	if (tid < 0) {
		f->crowded++;
		return;
	}
	before = f->out.len;
	begin_event(f);
	leat_event_span(&f->out, f->pid, tid, span, name);
	count_bytes(f, class, before);
}

static struct track *
track_of(struct trace_file *f, const char *name)
{
	size_t i = ((uintptr_t)name >> 4) % TRACKS;

	while (f->track[i].name && f->track[i].name != name)
		i = (i + 1) % TRACKS;
	f->track[i].name = name;
	return &f->track[i];
}

static void
show_value(void *arg, const char *name, uint64_t at_ns, double value)
{
	struct trace_file *f = arg;
	size_t before = f->out.len;
	uint64_t number;

	if (has_failed(f) || !isfinite(value)) /* JSON has no other numbers */
		return;
	number = track_of(f, name)->values++;
	if (!leat_thinning_keeps(&f->thinning[LEAT_TAG_COUNT], number))
		return;
	begin_event(f);
	leat_event_value(&f->out, f->pid, name, at_ns, value, number);
	count_bytes(f, LEAT_TAG_COUNT, before);
}

static void
show_tick(void *arg, uint64_t now_ns, const struct leat_recorded *recorded)
{
	struct trace_file *f = arg;

	if (now_ns - f->written_ns < EACH_NS)
		return;
	if (recorded->dropped + f->crowded != f->dropped) {
		f->dropped = recorded->dropped + f->crowded;
		show_value(f, "dropped spans", now_ns, (double)f->dropped);
	}
	flush(f);
	f->written_ns = now_ns;
}

static void
add_thinned(const struct trace_file *f, struct leat_str *text)
{
	for (int i = 0; i < LEAT_CLASSES; i++)
		if (f->thinning[i].every > 1)
			leat_str_addf(text, "; %s: 1 in %llu kept", class_name(i),
			              (unsigned long long)f->thinning[i].every);
}

/* Viewers show labels beside the name of the process. */
static void
add_labels(struct trace_file *f, const struct leat_recorded *recorded)
{
	struct leat_str text;

	leat_str_init(&text, f->mem, 4096);
	leat_str_addf(&text, "%llu spans, %llu dropped", (unsigned long long)recorded->spans,
	              (unsigned long long)(recorded->dropped + f->crowded));
	add_thinned(f, &text);
	begin_event(f);
	leat_event_text(&f->out, f->pid, 0, "process_labels", "labels", leat_str_text(&text));
	leat_str_free(&text);
}

static enum leat_status
finish(void *arg, const struct leat_recorded *recorded, struct leat_err *err)
{
	struct trace_file *f = arg;

	if (!has_failed(f)) {
		if (recorded->dropped + f->crowded != f->dropped)
			show_value(f, "dropped spans", leat_now(), (double)(recorded->dropped + f->crowded));
		add_labels(f, recorded);
		flush(f);
	}
	return has_failed(f) ? leat_fail_as(err, &f->failure) : LEAT_OK;
}

static void
free_file(void *arg)
{
	struct trace_file *f = arg;
	struct leat_mem *mem = f->mem;

	for (size_t i = 0; i < f->lanes; i++) {
		leat_free(mem, f->lane[i].row_end);
		leat_free(mem, f->lane[i].row_tid);
	}
	leat_free(mem, f->lane);
	leat_free(mem, f->track);
	leat_str_free(&f->out);
	leat_str_free(&f->thin_in);
	leat_str_free(&f->thin_out);
	leat_free(mem, f->name);
	leat_free(mem, f->path);
	leat_free(mem, f->thin_path);
	if (f->fd >= 0) {
		flock(f->fd, LOCK_UN); /* a child of fork may have the file open for long */
		close(f->fd);
	}
	leat_free(mem, f);
}

static const struct leat_span_sink sink = {
	.lane = show_lane,
	.span = show_span,
	.count = show_value,
	.tick = show_tick,
	.finish = finish,
	.free = free_file,
};

/* ---- opening ---- */

/* The file that a link leads to: thinning replaces it. */
static enum leat_status
create(struct trace_file *f, const char *path, struct leat_err *err)
{
	char real[PATH_MAX];
	struct stat st;

	f->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (f->fd < 0 || fstat(f->fd, &st) != 0)
		return leat_fail_errno_as(err, LEAT_IO, errno, "cannot write the trace '%s'", path);
	if (!S_ISREG(st.st_mode))
		return leat_fail(err, LEAT_INVALID, "cannot write the trace '%s': it is not a file", path);
	if (is_taken(f->fd))
		return leat_fail(err, LEAT_INVALID,
		                 "another process writes the trace '%s'; give each rank its own file", path);
	if (ftruncate(f->fd, 0) != 0)
		return leat_fail_errno_as(err, LEAT_IO, errno, "cannot write the trace '%s'", path);
	f->name = leat_strdup(f->mem, path);
	f->path = leat_strdup(f->mem, realpath(path, real) ? real : path);
	f->thin_path = f->path ? leat_asprintf(f->mem, "%s.thin", f->path) : NULL;
	return f->name && f->thin_path ? LEAT_OK : leat_fail_mem(err, f->mem, PATH_MAX, "the trace");
}

static enum leat_status
allocate(struct trace_file *f, struct leat_err *err)
{
	f->track = leat_alloc_array(f->mem, TRACKS, sizeof *f->track);
	leat_str_init(&f->out, f->mem, ROOM);
	leat_str_init(&f->thin_in, f->mem, ROOM);
	leat_str_init(&f->thin_out, f->mem, ROOM);
	leat_str_reserve(&f->out, ROOM);
	leat_str_reserve(&f->thin_in, ROOM);
	leat_str_reserve(&f->thin_out, ROOM);
	if (!f->track || f->out.failed || f->thin_in.failed || f->thin_out.failed)
		return leat_fail_mem(err, f->mem, ROOM, "the trace");
	return LEAT_OK;
}

/* What the process is called, and when it was by the clock on the wall: to compare traces of several machines. */
static enum leat_status
begin(struct trace_file *f, const char *process, struct leat_err *err)
{
	char text[80], day[32];
	struct timespec wall;
	struct tm tm;

	clock_gettime(CLOCK_REALTIME, &wall);
	gmtime_r(&wall.tv_sec, &tm);
	strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text, sizeof text, "%s.%03ldZ at ts %llu", day, wall.tv_nsec / 1000000,
	         (unsigned long long)(leat_now() / 1000));
	leat_str_add(&f->out, "[\n");
	leat_event_text(&f->out, f->pid, 0, "process_name", "name", process);
	begin_event(f);
	leat_event_text(&f->out, f->pid, 0, "leat_clock", "time", text);
	f->written_ns = leat_now();
	if (write_out(f->fd, &f->out, &f->end))
		return LEAT_OK;
	return leat_fail_errno_as(err, LEAT_IO, errno, "cannot write the trace '%s'", f->name);
}

enum leat_status
leat_trace_file_open(struct leat_recorder *recorder, struct leat_err *err)
{
	const struct leat_recorder_options *options = leat_recorder_settings(recorder);
	struct leat_mem *mem = leat_recorder_mem(recorder);
	struct trace_file *f = leat_alloc(mem, sizeof *f);
	enum leat_status status;

	if (!f)
		return leat_fail_mem(err, mem, sizeof *f, "the trace");
	f->mem = mem;
	f->fd = -1;
	f->log = leat_recorder_log(recorder);
	f->pid = (long)getpid();
	f->limit = options->trace_bytes;
	leat_err_clear(&f->failure);
	for (int i = 0; i < LEAT_CLASSES; i++)
		f->thinning[i].every = 1;
	leat_recorder_attach(recorder, &sink, f); /* it frees the file from now on */
	status = create(f, options->trace, err);
	if (status == LEAT_OK)
		status = allocate(f, err);
	if (status == LEAT_OK)
		status = begin(f, leat_recorder_process(recorder), err);
	return status;
}
