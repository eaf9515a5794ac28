/* feed.c - `leat feed`: run a spec and measure it
 *
 * The consumer takes batches in a loop and can simulate a device with a fixed step time. It reports what a training
 * loop would see. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/size.h"
#include "cli/bad_file.h"
#include "cli/command.h"
#include "cli/digest.h"
#include "cli/interrupt.h"
#include "cli/print.h"
#include "cli/stage_table.h"
#include "cli/text.h"
#include "feed/feed.h"
#include "feed/figures.h"
#include "store/store.h"
#include "trace/limit.h"
#include "trace/meter.h"
#include "trace/stats.h"
#include "xray/xray.h"

struct params {
	int64_t epochs, seed, threads, memory, rank, world, batches, max_bad, max_pixels, max_bytes;
	float step_ms;
	int on_error, fingerprint;
	const char *save, *resume, *list, *bad, *trace, *report, *prometheus;
	struct leat_strings storage;
	bool force, tune, checksum, json, quiet;
};

static const struct leat_opt options[] = {
	LEAT_INT(struct params, epochs, "1", 0, 1e15, "epochs to run; 0: until stopped"),
	LEAT_INT(struct params, seed, "0", 0, 9e18, "random seed; same seed, same batches"),
	LEAT_INT(struct params, threads, "0", 0, 1024, "worker threads; 0: one per available CPU"),
	LEAT_SIZE(struct params, memory, "0", 0, 1e18, "memory limit; 0: a quarter of the RAM, shared by local ranks"),
	LEAT_BOOL(struct params, tune, "true", "use fewer threads and batches ahead where they suffice"),
	LEAT_INT(struct params, rank, "-1", -1, 1e7, "this process's rank; -1: from the launcher's environment, or 0"),
	LEAT_INT(struct params, world, "0", 0, 1e7, "number of ranks; 0: from the launcher's environment, or 1"),
	LEAT_INT(struct params, batches, "0", 0, 1e15, "stop after this many batches; 0: no limit"),
	LEAT_FLOAT(struct params, step_ms, "0", 0, 1e6, "simulated step time per batch, in ms"),
	LEAT_ENUM(struct params, on_error, "fail", "fail|skip|replace",
                  "on a bad sample: fail, skip it, or replace it with another"),
	LEAT_INT(struct params, max_bad, "-1", -1, 9e18, "bad samples allowed per epoch; -1: no limit"),
	LEAT_STRING(struct params, bad, "", "write each bad sample to this file, as a line of JSON"),
	LEAT_SAMPLE_LIMITS(struct params),
	LEAT_STRING(struct params, save, "", "write a checkpoint to this file on exit, including ^C"),
	LEAT_STRING(struct params, resume, "", "resume from this checkpoint"),
	LEAT_BOOL(struct params, force, "false",
                  "with --resume: resume even if batch or other ops changed, if the order of samples is the same"),
	LEAT_ENUM(struct params, fingerprint, "names", "names|full",
                  "how checkpoints recognize the data: names, sizes and counts, or also all bytes"),
	LEAT_BOOL(struct params, checksum, "false", "print a checksum of all samples and their order"),
	LEAT_STRING(struct params, list, "", "write each sample's epoch, position and hash to this file"),
	LEAT_STRING(struct params, trace, "", "write what all threads do, and when, to this file, for ui.perfetto.dev"),
	LEAT_STRING(struct params, report, "", "write the run to this file, as a page with its figures and a timeline"),
	LEAT_STORAGE_OPTION(struct params),
	LEAT_STRING(struct params, prometheus, "",
                    "write the figures to this file each second, as text for Prometheus"),
	LEAT_BOOL(struct params, json, "false", "print the result as JSON"),
	LEAT_BOOL(struct params, quiet, "false", "suppress progress and messages"),
	LEAT_OPT_END,
};

/* One run of the command. */
struct session {
	const struct params *p;
	const struct leat_invocation *run;
	struct leat_mem *mem;
	struct leat_feed *feed;
	struct leat_recorder *recorder; /* of --trace and --report; NULL: none */
	struct leat_stores stores;      /* of --list */
	struct leat_digest digest;
	struct leat_bad_file bad;
	bool digesting, progress, interrupted;
	uint64_t begin_ns, end_ns, shown_ns, exposed_ns, batches;
	struct leat_meter meter;
	struct leat_interrupt interrupt;
};

static enum leat_status
open_recorder(struct session *s, struct leat_err *err)
{
	struct leat_recorder_options o;
	enum leat_status status;

	if (!*s->p->trace && !*s->p->report)
		return LEAT_OK;
	leat_recorder_options_init(&o);
	o.trace = *s->p->trace ? s->p->trace : NULL;
	o.timeline = *s->p->report != '\0';
	o.samplers = true;
	o.name = "leat feed";
	o.rank = (int)s->p->rank;
	o.world = (int)s->p->world;
	o.log = s->p->quiet ? NULL : leat_print_log;
	status = leat_recorder_open(&o, &s->recorder, err);
	if (status != LEAT_OK)
		leat_err_in(err, *s->p->trace ? "--trace" : "--report");
	return status;
}

static enum leat_status
open_feed(struct session *s, const char *spec, struct leat_err *err)
{
	const struct params *p = s->p;
	enum leat_status status;
	struct leat_options o;

	leat_options_init(&o);
	o.seed = (uint64_t)p->seed;
	o.epochs = (uint64_t)p->epochs;
	o.threads = (unsigned)p->threads;
	o.memory = (size_t)p->memory;
	o.tune = p->tune;
	o.rank = (int)p->rank;
	o.world = (int)p->world;
	o.on_error = (enum leat_on_error)p->on_error;
	o.max_bad = p->max_bad < 0 ? UINT64_MAX : (uint64_t)p->max_bad;
	o.max_pixels = (uint64_t)p->max_pixels;
	o.max_bytes = (uint64_t)p->max_bytes;
	o.fingerprint = (enum leat_fingerprint)p->fingerprint;
	o.log = p->quiet ? NULL : leat_print_log;
	o.storage = s->run->settings;
	o.recorder = s->recorder;
	status = leat_bad_file_open(&s->bad, p->bad, s->mem, &o, err);
	return status == LEAT_OK ? leat_open(spec, &o, &s->feed, err) : status;
}

static enum leat_status
resume(struct session *s, struct leat_err *err)
{
	char *json = NULL, *changes = NULL;
	enum leat_status status = leat_read_text(s->p->resume, s->run->storage, s->mem, &json, err);

	if (status == LEAT_OK)
		status = s->p->force ? leat_restore_loose(s->feed, json, &changes, err)
		                     : leat_restore(s->feed, json, err);
	if (changes && !s->p->quiet)
		leat_print_line(stderr, "leat: resumed with changes: %s", changes);
	free(changes);
	if (status != LEAT_OK)
		leat_err_in(err, "--resume %s", s->p->resume);
	if (status == LEAT_OK && !s->p->quiet && s->p->epochs > 0 && leat_epoch(s->feed) >= (uint64_t)s->p->epochs)
		fprintf(stderr, "leat: nothing is left to do: the checkpoint is at epoch %" PRIu64 "; raise --epochs\n",
		        leat_epoch(s->feed));
	leat_free(s->mem, json);
	return status;
}

static enum leat_status
save(struct session *s, struct leat_err *err)
{
	char *json = NULL, *line = NULL;
	enum leat_status status = leat_save(s->feed, &json, err);

	if (status == LEAT_OK) {
		line = leat_asprintf(s->mem, "%s\n", json);
		status = line ? leat_write_whole(s->p->save, line, strlen(line), LEAT_COMMIT_SYNC, s->run->storage,
		                                 s->mem, err)
		              : leat_fail_mem(err, s->mem, strlen(json) + 2, "a checkpoint");
	}
	leat_free(s->mem, line);
	free(json);
	return status;
}

/* With --save, ^C stops the run and writes a checkpoint. */
static void
stop(void *arg)
{
	struct session *s = arg;

	leat_cancel(s->feed);
}

/* ---- the loop ---- */

static double
per_second(double n, double seconds)
{
	return seconds > 0 ? n / seconds : 0;
}

static double
share(uint64_t part, uint64_t rest)
{
	return part + rest ? (double)part / (double)(part + rest) : 0;
}

/* The part of the run that is done; 0 if it has no end. */
static double
done_share(const struct session *s)
{
	double samples = (double)leat_samples(s->feed), batches = (double)s->p->batches, share = 0;

	if (s->p->epochs > 0 && samples > 0)
		share = ((double)leat_epoch(s->feed) + (double)leat_position(s->feed) / samples) / (double)s->p->epochs;
	if (batches > 0 && (double)s->batches / batches > share)
		share = (double)s->batches / batches;
	return share < 1 ? share : 1;
}

/* Why is in the result: the line is full. */
static void
show_tuning(const struct session *s)
{
	struct leat_tuning_choice choice[LEAT_TUNING_CHOICES];

	leat_tuning_list(s->feed, choice);
	fprintf(stderr, "  %" PRIu64 " thread%s, %" PRIu64 " ahead", choice[0].value, leat_plural(choice[0].value),
	        choice[1].value);
}

static void
show_progress(struct session *s)
{
	struct leat_meter_mark mark = {.ns = leat_now()};
	char rate_text[LEAT_RATE_TEXT], left_text[32];
	double rate, bytes, left;
	struct leat_stats stats;

	if (!s->progress || mark.ns - s->shown_ns < 200000000)
		return;
	s->shown_ns = mark.ns;
	leat_stats(s->feed, &stats);
	mark.samples = (double)stats.samples;
	mark.bytes = (double)stats.bytes;
	mark.done = done_share(s);
	leat_meter_add(&s->meter, &mark);
	leat_meter_rate(&s->meter, &rate, &bytes);
	fprintf(stderr, "\r\033[Kepoch %" PRIu64, leat_epoch(s->feed) + 1);
	if (s->p->epochs > 0)
		fprintf(stderr, " of %" PRId64, s->p->epochs);
	fprintf(stderr, "  %3.0f %%  %s samples/s  %.1f MB/s",
	        100 * (double)leat_position(s->feed) / (double)leat_samples(s->feed), leat_rate_text(rate_text, rate),
	        bytes / 1e6);
	if (s->p->step_ms > 0)
		fprintf(stderr, "  waited %.0f %%", 100 * share(stats.wait_ns, stats.run_ns));
	fprintf(stderr, "  limit: %s", stats.limit);
	show_tuning(s);
	left = leat_meter_left(&s->meter);
	if (left >= 0)
		fprintf(stderr, "  %s left", leat_meter_text(left_text, sizeof left_text, left));
	fflush(stderr);
}

/* The file appears whole, so whoever reads it never sees half of it. */
static enum leat_status
expose(struct session *s, bool now, struct leat_err *err)
{
	enum leat_status status;
	char *text;

	if (!*s->p->prometheus || (!now && leat_now() - s->exposed_ns < 1000000000))
		return LEAT_OK;
	s->exposed_ns = leat_now();
	text = leat_stats_prometheus(s->feed);
	if (!text)
		return leat_fail(err, LEAT_NOMEM, "no memory for the figures");
	status = leat_write_whole(s->p->prometheus, text, strlen(text), 0, s->run->storage, s->mem, err);
	free(text);
	if (status != LEAT_OK)
		leat_err_in(err, "--prometheus");
	return status;
}

/* The simulated step starts when the batch arrives. */
static void
step(const struct session *s, uint64_t got_ns)
{
	uint64_t until = got_ns + (uint64_t)((double)s->p->step_ms * 1e6);
	struct timespec t = {(time_t)(until / 1000000000), (long)(until % 1000000000)};

	if (s->p->step_ms > 0)
		while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
			;
}

static enum leat_status
consume(struct session *s, struct leat_err *err)
{
	struct leat_batch *batch;
	enum leat_status status;

	s->begin_ns = s->shown_ns = leat_now();
	if (expose(s, true, err) != LEAT_OK)
		return err->status;
	while (s->p->batches == 0 || s->batches < (uint64_t)s->p->batches) {
		status = leat_next(s->feed, &batch, err);
		if (status == LEAT_END && leat_batches(s->feed) > 0)
			continue;
		if (status != LEAT_OK)
			break;
		s->batches++;
		if (s->digesting)
			status = leat_digest_add(&s->digest, s->feed, batch, err);
		step(s, leat_now());
		leat_release(batch);
		if (status != LEAT_OK)
			break;
		show_progress(s);
		if (expose(s, false, err) != LEAT_OK)
			break;
	}
	s->end_ns = leat_now();
	if (s->progress)
		fprintf(stderr, "\r\033[K");
	s->interrupted = s->interrupt.watching && err->status == LEAT_CANCELLED;
	if (err->status == LEAT_DONE || err->status == LEAT_END || s->interrupted)
		leat_err_clear(err);
	return err->status == LEAT_OK ? expose(s, true, err) : err->status;
}

/* ---- the result ---- */

struct result {
	struct leat_figures figures;
	double seconds;
	size_t peak_rss;
	char checksum[LEAT_SHA256_HEX];
};

static void
measure(const struct session *s, struct result *r)
{
	struct rusage usage;

	leat_feed_figures(s->feed, s->p->step_ms <= 0, &r->figures);
	r->seconds = (double)(s->end_ns - s->begin_ns) / 1e9;
	getrusage(RUSAGE_SELF, &usage);
	r->peak_rss = (size_t)usage.ru_maxrss * 1024;
	leat_digest_hex(&s->digest, r->checksum);
}

static void
json_bad(const struct session *s, struct leat_str *out)
{
	const struct leat_bad *bad;

	leat_str_add(out, "\"bad\": [");
	for (uint64_t i = 0; (bad = leat_bad_at(s->feed, i)) != NULL; i++) {
		leat_str_add(out, i ? ",\n  " : "\n  ");
		leat_bad_add_json(bad, out);
	}
	leat_str_add(out, "]");
}

/* Prints the result, or writes it to a report. */
static enum leat_status
give_json(const struct session *s, const struct result *r, bool to_report, struct leat_err *err)
{
	const struct leat_stats *st = &r->figures.stats;
	enum leat_status status = LEAT_OK;
	struct leat_str out;

	leat_str_init(&out, s->mem, (size_t)1 << 30);
	leat_str_addf(&out, "{\"samples\": %" PRIu64 ", \"batches\": %" PRIu64 ", \"seconds\": %.6f,\n ", st->samples,
	              st->batches, r->seconds);
	leat_str_addf(&out, "\"samples_per_s\": %.1f, \"mb_per_s\": %.3f, \"wait_share\": %.5f,\n ",
	              per_second((double)st->samples, r->seconds), per_second((double)st->bytes / 1e6, r->seconds),
	              share(st->wait_ns, st->run_ns));
	leat_str_addf(&out, "\"first_batch_ms\": %.3f, \"peak_rss_mib\": %.1f, \"memory_mib\": %.1f, \"threads\": %u, ",
	              (double)st->first_batch_ns / 1e6, (double)r->peak_rss / 1048576,
	              (double)st->memory_peak / 1048576, st->threads);
	leat_str_addf(&out, "\"limit\": \"%s\",\n \"bad_count\": %" PRIu64 ", ", st->limit, st->bad);
	json_bad(s, &out);
	leat_str_add(&out, ",\n ");
	leat_figures_add_json(&r->figures, &out);
	leat_str_add(&out, ",\n \"stats\": ");
	leat_stats_add_json(st, &out);
	if (s->p->checksum)
		leat_str_addf(&out, ",\n \"checksum\": \"%s\"", r->checksum);
	leat_str_addf(&out, ",\n \"step_ms\": %g, \"spec\": ", (double)s->p->step_ms);
	leat_str_add_json(&out, leat_canonical(s->feed));
	leat_str_add(&out, "}");
	if (out.failed)
		status = leat_fail(err, LEAT_NOMEM, "no memory for the result");
	else if (to_report)
		status = leat_report_store(s->recorder, leat_str_text(&out), s->p->report, s->run->storage, err);
	else
		puts(leat_str_text(&out));
	leat_str_free(&out);
	return status;
}

static void row(struct leat_table *table, const char *name, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void
row(struct leat_table *table, const char *name, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	leat_str_add(leat_table_cell(table), name);
	leat_str_add(leat_table_cell(table), text);
}

static enum leat_status
print_table(const struct session *s, const struct result *r, struct leat_err *err)
{
	const struct leat_stats *st = &r->figures.stats;
	const struct leat_distribution *batches = &r->figures.batch_times;
	char resident[32], reserved[32], rate[LEAT_RATE_TEXT];
	struct leat_table table;
	enum leat_status status;

	leat_table_init(&table, s->mem, 2);
	row(&table, "samples", "%" PRIu64 " in %" PRIu64 " batch%s", st->samples, st->batches,
	    st->batches == 1 ? "" : "es");
	row(&table, "time", "%.3f s, first batch after %.1f ms", r->seconds, (double)st->first_batch_ns / 1e6);
	row(&table, "rate", "%s samples/s, %.1f MB/s",
	    leat_rate_text(rate, per_second((double)st->samples, r->seconds)),
	    per_second((double)st->bytes / 1e6, r->seconds));
	if (s->p->step_ms > 0)
		row(&table, "waited", "%.1f %% of the time", 100 * share(st->wait_ns, st->run_ns));
	if (batches->count > 1)
		row(&table, "batches", "%.2f ms in the median, %.2f ms at the 99th percentile, %.2f ms at most",
		    leat_distribution_quantile(batches, 0.5) / 1e6, leat_distribution_quantile(batches, 0.99) / 1e6,
		    (double)batches->max_ns / 1e6);
	if (st->requests)
		row(&table, "reads", "%s: %" PRIu64 " request%s, %" PRIu64 " of them again", st->reads, st->requests,
		    leat_plural(st->requests), st->retries);
	row(&table, "memory", "peak %s resident, %s reserved", leat_format_size(resident, sizeof resident, r->peak_rss),
	    leat_format_size(reserved, sizeof reserved, st->memory_peak));
	row(&table, "threads", "%u", st->threads);
	leat_str_add(leat_table_cell(&table), "tuning");
	leat_tuning_add_text(s->feed, leat_table_cell(&table));
	if (st->bad > 0)
		row(&table, "bad", "%" PRIu64 " sample%s", st->bad, leat_plural(st->bad));
	status = leat_table_print(&table, stdout, err);
	leat_print_bad(s->feed, st->bad);
	if (status == LEAT_OK)
		status = leat_print_stages(&r->figures.stages, &r->figures.limit, s->mem, err);
	return status;
}

static enum leat_status
report(const struct session *s, struct leat_err *err)
{
	struct result *r = leat_alloc(s->mem, sizeof *r);
	enum leat_status status;

	if (!r)
		return leat_fail_mem(err, s->mem, sizeof *r, "the result");
	measure(s, r);
	if (!s->p->json && leat_batches(s->feed) == 0)
		status = puts("no batches") < 0 ? leat_fail(err, LEAT_IO, "cannot write the result") : LEAT_OK;
	else
		status = s->p->json ? give_json(s, r, false, err) : print_table(s, r, err);
	if (s->p->checksum && !s->p->json)
		printf("checksum %s\n", r->checksum);
	if (status == LEAT_OK && *s->p->report)
		status = give_json(s, r, true, err);
	leat_free(s->mem, r);
	if (s->interrupted && !s->p->quiet)
		fprintf(stderr, "leat: stopped; continue with --resume %s\n", s->p->save);
	return status;
}

static enum leat_status
open_digest(struct session *s, struct leat_err *err)
{
	enum leat_status status;

	s->digesting = s->p->checksum || *s->p->list;
	if (leat_digest_open(&s->digest) != 0)
		return leat_fail(err, LEAT_NOMEM, "no memory for a checksum");
	if (!*s->p->list)
		return LEAT_OK;
	leat_stores_init(&s->stores, s->mem);
	s->stores.storage = s->run->storage;
	status = leat_write_begin(&s->digest.list, &s->stores, s->p->list, err);
	if (status != LEAT_OK)
		leat_err_in(err, "--list");
	return status;
}

/* Keeps the list of a failed run: it shows how far the run got. */
static enum leat_status
close_digest(struct session *s, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (s->feed && s->digest.list)
		status = leat_write_commit(s->digest.list, NULL, 0, err);
	else
		leat_write_abort(s->digest.list);
	leat_stores_close(&s->stores);
	leat_digest_close(&s->digest);
	return status;
}

static enum leat_status
run_feed(const struct leat_invocation *run, struct leat_err *err)
{
	struct session s = {.p = run->params, .run = run, .mem = run->mem};
	enum leat_status status, closed;

	if (s.p->force && !*s.p->resume)
		return leat_fail(err, LEAT_INVALID, "--force is for --resume, which is not given");
	status = leat_check_spec(run->operand[0], run->storage, run->mem, err);
	if (status == LEAT_OK && *s.p->save)
		status = leat_check_output(s.p->save, "--save", run->storage, run->mem, err);
	if (status == LEAT_OK && *s.p->report)
		status = leat_check_output(s.p->report, "--report", run->storage, run->mem, err);
	if (status != LEAT_OK)
		return status;
	s.progress = !s.p->json && !s.p->quiet && leat_is_terminal(stderr);
	status = open_digest(&s, err);
	if (status == LEAT_OK)
		status = open_recorder(&s, err);
	if (status == LEAT_OK)
		status = open_feed(&s, run->operand[0], err);
	if (status == LEAT_OK && *s.p->resume)
		status = resume(&s, err);
	if (status == LEAT_OK && *s.p->save)
		leat_interrupt_begin(&s.interrupt, stop, &s);
	if (status == LEAT_OK)
		status = consume(&s, err);
	leat_interrupt_end(&s.interrupt);
	if (status == LEAT_OK && *s.p->save)
		status = save(&s, err);
	if (status == LEAT_OK)
		status = report(&s, err);
	closed = close_digest(&s, err);
	leat_close(s.feed);
	if (status == LEAT_OK)
		status = closed;
	closed = leat_recorder_close(s.recorder, status == LEAT_OK ? err : NULL);
	if (status == LEAT_OK)
		status = closed;
	closed = leat_bad_file_close(&s.bad, err);
	return status == LEAT_OK ? closed : status;
}

const struct leat_command leat_command_feed = {
	.name = "feed",
	.summary = "Run a spec and measure its throughput",
	.operands = "SPEC",
	.min_operands = 1,
	.max_operands = 1,
	.help = "Takes batches as a training loop would, with --step-ms simulating the device, and\n"
		"prints the throughput, what each stage did, and what limits. The same\n"
		"seed gives the same batches for any number of threads and ranks and any memory limit;\n"
		"verify it with --checksum.",
	.example = "leat feed \"tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64) | decode | "
		   "resize(100, 100) "
		   "| shuffle | batch(32)\" --epochs 2 --step-ms 20",
	.opts = options,
	.params_size = sizeof(struct params),
	.run = run_feed,
};
