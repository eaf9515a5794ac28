/* print.c - aligned tables, bold text and progress */
#include "cli/print.h"

#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/mem.h"

enum { INDENT = 2, GAP = 2, MAX_CELL = 1 << 16, MAX_LINE = 4096, REDRAW_NS = 200 * 1000 * 1000 };

bool
leat_is_terminal(FILE *out)
{
	const char *term = getenv("TERM");

	return isatty(fileno(out)) && !(term && strcmp(term, "dumb") == 0);
}

static bool
has_emphasis(FILE *out)
{
	const char *no_color = getenv("NO_COLOR");

	return leat_is_terminal(out) && !(no_color && *no_color);
}

const char *
leat_bold(FILE *out)
{
	return has_emphasis(out) ? "\033[1m" : "";
}

const char *
leat_plain(FILE *out)
{
	return has_emphasis(out) ? "\033[0m" : "";
}

/* Columns of the terminal; 0: not a terminal, no limit. */
static size_t
terminal_width(FILE *out)
{
	struct winsize size;

	if (!leat_is_terminal(out) || ioctl(fileno(out), TIOCGWINSZ, &size) != 0)
		return 0;
	return size.ws_col;
}

/* ---- tables ---- */

void
leat_table_init(struct leat_table *table, struct leat_mem *mem, size_t columns)
{
	*table = (struct leat_table){.mem = mem, .columns = columns};
	leat_str_init(&table->spare, mem, MAX_CELL);
}

struct leat_str *
leat_table_cell(struct leat_table *table)
{
	struct leat_str *cell;

	if (LEAT_GROW(table->mem, table->cell, table->cap, table->cells + 1, SIZE_MAX, "a table", NULL) != LEAT_OK) {
		table->spare.failed = true;
		return &table->spare;
	}
	cell = &table->cell[table->cells++];
	leat_str_init(cell, table->mem, MAX_CELL);
	return cell;
}

void
leat_table_free(struct leat_table *table)
{
	for (size_t i = 0; i < table->cells; i++)
		leat_str_free(&table->cell[i]);
	leat_free(table->mem, table->cell);
	table->cell = NULL;
	table->cells = 0;
}

/* Counts characters, assuming each is one column wide. */
static size_t
width_of(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* Wraps the last column at `limit`, indenting each line like the first. */
static void
print_wrapped(FILE *out, const char *text, size_t indent, size_t limit)
{
	size_t at = indent;

	while (*text) {
		size_t space = strspn(text, " "), len = space + strcspn(text + space, " ");
		char word[256];

		snprintf(word, sizeof(word), "%.*s", (int)len, text);
		if (limit && at > indent && at + width_of(word) > limit) {
			fprintf(out, "\n%*s", (int)indent, "");
			at = indent;
			text += space;
			len -= space;
		}
		fwrite(text, 1, len, out);
		at += width_of(word);
		text += len;
	}
}

static void
print_row(const struct leat_table *table, const struct leat_str *row, const size_t *width, FILE *out)
{
	size_t at = INDENT, limit = terminal_width(out);

	fprintf(out, "%*s", INDENT, "");
	for (size_t c = 0; c < table->columns; c++) {
		const char *text = leat_str_text(&row[c]);
		int pad = (int)(width[c] - width_of(text));
		bool last = c + 1 == table->columns;

		if (table->right[c])
			fprintf(out, "%*s", pad, "");
		if (last)
			print_wrapped(out, text, at, limit > at + 20 ? limit : 0);
		else
			fprintf(out, "%s%*s", text, (table->right[c] ? 0 : pad) + GAP, "");
		at += width[c] + GAP;
	}
	fputc('\n', out);
}

/* Names of files and the like may have control characters. */
static void
make_visible(struct leat_str *cell)
{
	struct leat_str shown;

	if (leat_is_visible(leat_str_text(cell)))
		return;
	leat_str_init(&shown, cell->mem, MAX_CELL);
	leat_str_add_shown(&shown, leat_str_text(cell));
	shown.failed |= cell->failed;
	leat_str_free(cell);
	*cell = shown;
}

enum leat_status
leat_table_print(struct leat_table *table, FILE *out, struct leat_err *err)
{
	size_t width[LEAT_TABLE_COLUMNS] = {0};
	bool failed = table->spare.failed;

	for (size_t i = 0; i < table->cells; i++) {
		size_t w;

		make_visible(&table->cell[i]);
		w = width_of(leat_str_text(&table->cell[i]));
		failed |= table->cell[i].failed;
		if (w > width[i % table->columns])
			width[i % table->columns] = w;
	}
	for (size_t i = 0; !failed && i + table->columns <= table->cells; i += table->columns)
		print_row(table, &table->cell[i], width, out);
	leat_table_free(table);
	return failed ? leat_fail_mem(err, table->mem, table->cap * sizeof(*table->cell), "a table") : LEAT_OK;
}

/* ---- progress ---- */

void
leat_progress_begin(struct leat_progress *progress, FILE *out, const char *what)
{
	*progress = (struct leat_progress){.out = leat_is_terminal(out) ? out : NULL,
	                                   .what = what,
	                                   .step = getenv("LEAT_STEP"),
	                                   .begun_ns = leat_now()};
}

/* ", 12 s left", an estimate; nothing in the first second. */
static void
format_left(const struct leat_progress *progress, uint64_t now, unsigned long long done, unsigned long long total,
            char *left, size_t cap)
{
	double passed_s = (double)(now - progress->begun_ns) * 1e-9, s;

	*left = '\0';
	if (passed_s < 1 || !done || done > total)
		return;
	s = passed_s * (double)(total - done) / (double)done;
	if (s < 100)
		snprintf(left, cap, ", %.0f s left", s);
	else if (s < 100 * 60)
		snprintf(left, cap, ", %.0f min left", s / 60);
	else
		snprintf(left, cap, ", %.1f h left", s / 3600);
}

/* What leat.step.progress of the Python package does: a file next to step.json, replaced as a whole. */
static void
replace_progress(const char *step, const char *json)
{
	const char *slash = strrchr(step, '/');
	int folder = slash ? (int)(slash - step) : 0;
	char path[PATH_MAX], temp[PATH_MAX];
	FILE *out;

	if (!slash || snprintf(path, sizeof(path), "%.*s/progress", folder, step) >= (int)sizeof(path) ||
	    snprintf(temp, sizeof(temp), "%.*s/progress.new", folder, step) >= (int)sizeof(temp))
		return;
	out = fopen(temp, "we");
	if (!out)
		return;
	fputs(json, out);
	if (fclose(out) == 0)
		(void)rename(temp, path);
}

static void
tell_build(const struct leat_progress *progress, unsigned long long done, unsigned long long total, const char *left)
{
	char json[200];

	snprintf(json, sizeof(json), "{\"done\": %llu, \"total\": %llu, \"text\": \"%s%s\"}\n", done, total,
	         progress->what, left);
	replace_progress(progress->step, json);
}

void
leat_progress_say(const char *fmt, ...)
{
	const char *step = getenv("LEAT_STEP");
	char text[100], json[200];
	va_list ap;

	if (!step)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(json, sizeof(json), "{\"text\": \"%s\"}\n", text);
	replace_progress(step, json);
}

void
leat_progress_at(struct leat_progress *progress, unsigned long long done, unsigned long long total)
{
	char left[32];
	uint64_t now;

	if (!progress->out && !progress->step)
		return;
	now = leat_now();
	if (now - progress->shown_ns < REDRAW_NS)
		return;
	progress->shown_ns = now;
	format_left(progress, now, done, total, left, sizeof(left));
	if (progress->step)
		tell_build(progress, done, total, left);
	if (!progress->out)
		return;
	progress->drawn = true;
	fprintf(progress->out, "\r\033[K%s %llu of %llu (%.0f%%)%s", progress->what, done, total,
	        total ? 100.0 * (double)done / (double)total : 100.0, left);
	fflush(progress->out);
}

void
leat_progress_end(struct leat_progress *progress)
{
	if (!progress->drawn)
		return;
	fputs("\r\033[K", progress->out);
	fflush(progress->out);
}

/* ---- warnings and bad samples of a feed ---- */

void
leat_print_line(FILE *out, const char *fmt, ...)
{
	char line[MAX_LINE];
	va_list ap;

	va_start(ap, fmt);
	leat_vformat(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(out, "%s\n", line);
}

void
leat_print_log(void *arg, enum leat_log_level level, const char *text)
{
	(void)arg;
	if (level >= LEAT_LOG_WARN)
		fprintf(stderr, "leat: %s\n", text);
}

void
leat_print_bad(const struct leat_feed *feed, uint64_t count)
{
	enum { SHOWN = 10 };
	const struct leat_bad *bad;

	for (uint64_t i = 0; i < SHOWN && (bad = leat_bad_at(feed, i)) != NULL; i++)
		leat_print_line(stdout,
		                "bad sample %" PRIu64 " (epoch %" PRIu64 ", position %" PRIu64
		                "%s): %s at offset %" PRIu64 ": %s",
		                bad->sample, bad->epoch, bad->position, bad->replaced ? ", replaced" : ", skipped",
		                bad->uri, bad->offset, bad->reason);
	if (count > SHOWN)
		printf("... and %" PRIu64 " more; --bad FILE lists all\n", count - SHOWN);
}
