/* progress_tree.c - the tree of a build: steps, what runs, how long, and what is left */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/size.h"
#include "cli/progress.h"

enum { BAR = 20, MAX_TREE = 1 << 20 };

void
leat_add_duration(struct leat_str *out, double seconds)
{
	unsigned long long s = (unsigned long long)llround(seconds);

	if (seconds < 9.95)
		leat_str_addf(out, "%llu.%llu s", (unsigned long long)(seconds + 0.05),
		              (unsigned long long)(seconds * 10 + 0.5) % 10);
	else if (s < 120)
		leat_str_addf(out, "%llu s", s);
	else if (s < 7200)
		leat_str_addf(out, "%llu min %llu s", s / 60, s % 60);
	else
		leat_str_addf(out, "%llu h %llu min", s / 3600, s / 60 % 60);
}

/* Appends a line, cut off after `columns` characters. */
static void
add_line(struct leat_str *out, const char *text, size_t columns)
{
	size_t width = 0, len = 0;

	while (text[len] && (columns == 0 || width < columns)) {
		do
			len++;
		while (((unsigned char)text[len] & 0xc0) == 0x80);
		width++;
	}
	leat_str_addn(out, text, len);
	leat_str_add(out, "\n");
}

/* ---- steps ---- */

static size_t
done_of(const struct leat_progress_step *s)
{
	return s->cached + s->ran;
}

static void
add_bar(struct leat_str *line, size_t done, size_t all)
{
	size_t full = all ? done * BAR / all : BAR;

	for (size_t i = 0; i < BAR; i++)
		leat_str_add(line, i < full ? "━" : "╌");
}

static void
add_part(struct leat_str *line, size_t count, const char *what, bool *first)
{
	if (!count)
		return;
	leat_str_addf(line, "%s%zu %s", *first ? "  " : ", ", count, what);
	*first = false;
}

/* "decode  ━━━━━━━━━╌╌╌╌  231 of 360  120 made before, 111 ran, 1 failed" */
static void
add_step(struct leat_str *line, const struct leat_step *step, const struct leat_progress_step *s, size_t width)
{
	bool first = true;

	leat_str_addf(line, "%-*s  ", (int)width, step->name);
	add_bar(line, done_of(s), s->actions);
	leat_str_addf(line, "  %zu of %zu", done_of(s), s->actions);
	add_part(line, s->cached, "made before", &first);
	add_part(line, s->ran, "ran", &first);
	add_part(line, s->running, "running", &first);
	add_part(line, s->failed, "failed", &first);
	add_part(line, s->skipped, "skipped", &first);
}

/* ---- what runs ---- */

/* "  subject=3,bin=7  4.1 s of about 5 s  fold 3 of 10" */
static void
add_action(struct leat_str *line, const struct leat_progress_action *action, uint64_t now)
{
	unsigned long long done = atomic_load(&action->running->done), total = atomic_load(&action->running->total);
	char last[sizeof(action->running->last_line)];

	if (*action->slice)
		leat_str_addf(line, "  %s  ", action->slice);
	else
		leat_str_addf(line, "  %s-%llu  ", action->step->name, (unsigned long long)action->number);
	leat_add_duration(line, (double)(now - action->begun_ns) * 1e-9);
	if (action->expected_s > 0) {
		leat_str_add(line, " of about ");
		leat_add_duration(line, action->expected_s);
	}
	if (total > 0)
		leat_str_addf(line, "  %llu of %llu", done, total);
	pthread_mutex_lock(&action->running->lock);
	memcpy(last, action->running->last_line, sizeof(last));
	pthread_mutex_unlock(&action->running->lock);
	if (*last)
		leat_str_addf(line, "  %s", last);
}

/* ---- time left ---- */

/* What is left of a step, in seconds of one action after the other. Negative: unknown. */
static double
left_of(const struct leat_progress_step *s)
{
	size_t over = done_of(s) + s->failed + s->skipped, left = s->actions > over ? s->actions - over : 0;

	if (left == 0)
		return 0;
	if (s->timed)
		return s->expected_s;
	return s->ran ? s->ran_s / (double)s->ran * (double)left : -1;
}

static double
cpus_of(const struct leat_build_progress *p, const struct leat_step *step)
{
	return fmin(fmax(step->cpus, 1), fmax(p->jobs, 1));
}

/* CPU time, divided among the jobs; but no less than the longest action still takes. Negative: unknown. */
static double
time_left(const struct leat_build_progress *p, uint64_t now)
{
	double all = 0, longest = 0;

	for (size_t i = 0; i < p->project->steps; i++) {
		double left = left_of(&p->step[i]);

		if (left < 0)
			return -1;
		all += left * cpus_of(p, &p->project->step[i]);
	}
	for (size_t i = 0; i < p->actions; i++) {
		double ran = (double)(now - p->action[i].begun_ns) * 1e-9;

		all -= fmin(ran, p->action[i].expected_s) * cpus_of(p, p->action[i].step);
		longest = fmax(longest, p->action[i].expected_s - ran);
	}
	return fmax(all / fmax(p->jobs, 1), longest);
}

/* ---- the tree ---- */

struct page {
	struct leat_str *out, line;
	size_t rows, columns, used;
};

static void
end_line(struct page *page)
{
	if (page->rows == 0 || page->used < page->rows) {
		add_line(page->out, leat_str_text(&page->line), page->columns);
		page->used++;
	}
	page->line.len = 0;
	if (page->line.text)
		*page->line.text = '\0';
}

static size_t
name_width(const struct leat_project *project)
{
	size_t width = 0;

	for (size_t i = 0; i < project->steps; i++)
		if (strlen(project->step[i].name) > width)
			width = strlen(project->step[i].name);
	return width < 32 ? width : 32;
}

/* Finished steps are left out when there is no room for all. */
static bool
is_shown(const struct leat_build_progress *p, size_t i, size_t rows)
{
	const struct leat_progress_step *s = &p->step[i];

	return s->actions > 0 && (rows == 0 || p->project->steps + p->actions < rows || done_of(s) < s->actions);
}

static void
add_steps(struct page *page, const struct leat_build_progress *p, uint64_t now)
{
	size_t width = name_width(p->project);

	for (size_t i = 0; i < p->project->steps; i++) {
		size_t step = p->project->order[i];

		if (!is_shown(p, step, page->rows))
			continue;
		add_step(&page->line, &p->project->step[step], &p->step[step], width);
		end_line(page);
		for (size_t a = 0; a < p->actions; a++)
			if (p->action[a].step == &p->project->step[step]) {
				add_action(&page->line, &p->action[a], now);
				end_line(page);
			}
	}
}

/* "hashing sources: 1.2 GiB of 8.0 GiB, 312 of 4000 files"; nothing before the first bytes. */
static void
add_hashing(struct leat_str *line, const struct leat_hashing *h)
{
	unsigned long long bytes = atomic_load(&h->bytes), files = atomic_load(&h->files);
	unsigned long long all_bytes = atomic_load(&h->all_bytes), all_files = atomic_load(&h->all_files);
	bool is_counted =
		atomic_load(&h->is_counted) && bytes <= all_bytes && files <= all_files; /* else they change */
	char size[32];

	leat_str_addf(line, "hashing sources: %s", leat_format_size(size, sizeof(size), bytes));
	if (is_counted)
		leat_str_addf(line, " of %s", leat_format_size(size, sizeof(size), all_bytes));
	leat_str_addf(line, ", %llu", files);
	if (is_counted)
		leat_str_addf(line, " of %llu", all_files);
	leat_str_addf(line, " file%s", leat_plural(is_counted ? all_files : files));
}

/* "fetching sources: 1.2 GiB of 8.0 GiB, 3 of 40 files, 85.1 MiB/s, about 81 s left" */
static void
add_fetching(struct leat_str *line, const struct leat_hashing *h, uint64_t now)
{
	unsigned long long bytes = atomic_load(&h->fetched_bytes), all = atomic_load(&h->fetch_bytes);
	unsigned long long files = atomic_load(&h->fetched_files), all_files = atomic_load(&h->fetch_files);
	double seconds = (double)(now - atomic_load(&h->fetch_begun_ns)) * 1e-9,
	       rate = (double)bytes / fmax(seconds, 1e-3);
	char size[32];

	leat_str_addf(line, "fetching sources: %s", leat_format_size(size, sizeof(size), bytes));
	leat_str_addf(line, " of %s", leat_format_size(size, sizeof(size), all));
	leat_str_addf(line, ", %llu of %llu file%s", files, all_files, leat_plural(all_files));
	if (bytes == 0 || bytes > all)
		return;
	leat_str_addf(line, ", %s/s", leat_format_size(size, sizeof(size), (unsigned long long)rate));
	if (bytes < all) {
		leat_str_add(line, ", about ");
		leat_add_duration(line, (double)(all - bytes) / rate);
		leat_str_add(line, " left");
	}
}

size_t
leat_progress_tree(const struct leat_build_progress *p, struct leat_str *out, size_t rows, size_t columns)
{
	struct page page = {.out = out, .rows = rows > 1 ? rows - 1 : rows, .columns = columns};
	uint64_t now = leat_now();
	double left = time_left(p, now);

	leat_str_init(&page.line, p->mem, MAX_TREE);
	if (p->is_hashing && atomic_load(&p->hashing.bytes) > 0) {
		add_hashing(&page.line, &p->hashing);
		end_line(&page);
	}
	if (p->is_hashing && atomic_load(&p->hashing.fetched_files) < atomic_load(&p->hashing.fetch_files)) {
		add_fetching(&page.line, &p->hashing, now);
		end_line(&page);
	}
	add_steps(&page, p, now);
	page.rows = 0;
	if (left > 0) {
		leat_str_add(&page.line, "about ");
		leat_add_duration(&page.line, left);
		leat_str_add(&page.line, " left");
		end_line(&page);
	}
	leat_str_free(&page.line);
	return page.used;
}
