/* indexed.c - see indexed.h */
#include "format/indexed.h"

#include <string.h>

#include "base/str.h"
#include "base/threads.h"

/* Reloads a saved index, so that this run needs as much memory as later ones. */
static enum leat_status
load_again(const struct leat_index_kind *kind, struct leat_files *files, size_t i, struct leat_mem *mem,
           const struct leat_log *log, struct leat_index *index, struct leat_err *err)
{
	enum leat_status status;

	leat_index_free(index);
	status = leat_index_load(index, kind, leat_files_at(files, i), mem, log, err);
	return status == LEAT_AGAIN ? kind->make(files, i, mem, log, index, err) : status;
}

/* Loads or builds the index of file `i`. `unsaved` says why saving failed, which is not an error. Any thread. */
static enum leat_status
load_or_make(const struct leat_index_kind *kind, struct leat_files *files, size_t i, struct leat_mem *mem,
             const struct leat_log *log, struct leat_index *index, enum leat_index_state *state,
             struct leat_err *unsaved, struct leat_err *err)
{
	const struct leat_object *file = leat_files_at(files, i);
	enum leat_status status = LEAT_AGAIN;

	*state = LEAT_INDEX_FRESH;
	if (file->size)
		status = leat_index_load(index, kind, file, mem, log, err);
	if (status != LEAT_AGAIN)
		return status;
	status = kind->make(files, i, mem, log, index, err);
	if (status != LEAT_OK || !file->size)
		return status;
	status = leat_index_save(index, kind, file, mem, unsaved);
	*state = status == LEAT_OK ? LEAT_INDEX_BUILT : LEAT_INDEX_UNSAVED;
	return status == LEAT_OK ? load_again(kind, files, i, mem, log, index, err) : LEAT_OK;
}

/* Shared by the indexing threads. */
struct open_job {
	const struct leat_index_kind *kind;
	struct leat_indexed *indexed;
	const struct leat_log *log;
	atomic_size_t built, unsaved;
};

static enum leat_status
prepare(void *arg, size_t i, struct leat_err *err)
{
	struct open_job *job = arg;
	struct leat_indexed *indexed = job->indexed;
	enum leat_index_state outcome;
	struct leat_err unsaved;
	enum leat_status status;
	const void *bytes;
	size_t len = 0;

	if (indexed->data.bytes)
		bytes = leat_data_index_at(&indexed->data, i, &len);
	if (len) {
		leat_index_borrow(&indexed->index[i], bytes, len, job->kind, leat_files_at(indexed->files, i),
		                  indexed->mem);
		return LEAT_OK;
	}
	leat_err_clear(&unsaved);
	status = load_or_make(job->kind, indexed->files, i, indexed->mem, job->log, &indexed->index[i], &outcome,
	                      &unsaved, err);
	if (status != LEAT_OK)
		return status;
	if (outcome == LEAT_INDEX_BUILT)
		atomic_fetch_add(&job->built, 1);
	/* Log only the first: an unwritable folder fails them all. */
	if (outcome == LEAT_INDEX_UNSAVED && atomic_fetch_add(&job->unsaved, 1) == 0)
		leat_log(job->log, LEAT_LOG_WARN, "an index could not be saved and will be rebuilt at each start: %s",
		         unsaved.text);
	return LEAT_OK;
}

static void
warn_of_damage(const struct leat_log *log, const struct leat_index *index, const char *uri)
{
	uint64_t first = 0;

	if (!index->damaged)
		return;
	if (index->packed) {
		leat_log(log, LEAT_LOG_WARN, "'%s' is damaged at compressed offset %llu; the rest is lost: %s", uri,
		         (unsigned long long)index->points.head.fault_at, index->points.head.fault);
		return;
	}
	while (!leat_index_is_damaged(index, first))
		first++;
	leat_log(log, LEAT_LOG_WARN, "'%s' is damaged in %llu place%s, the first at offset %llu", uri,
	         (unsigned long long)index->damaged, leat_plural(index->damaged),
	         (unsigned long long)leat_index_offset(index, first));
}

static void
count_samples(struct leat_indexed *indexed, const struct leat_log *log)
{
	for (size_t i = 0; i < leat_files_count(indexed->files); i++) {
		const struct leat_index *index = &indexed->index[i];

		warn_of_damage(log, index, leat_files_at(indexed->files, i)->uri);
		indexed->first[i + 1] = indexed->first[i] + index->count;
		indexed->damaged += index->damaged;
		if (index->max_length > indexed->max_length)
			indexed->max_length = index->max_length;
	}
}

/* Scanning files on a server is mostly waiting. */
static unsigned
threads_for(struct leat_files *files, unsigned threads)
{
	enum { REMOTE = 8 };

	return leat_files_count(files) && leat_files_at(files, 0)->store->kind->remote && threads < REMOTE ? REMOTE
	                                                                                                   : threads;
}

/* `indexed` has its files, and maybe the index of the data set. */
static enum leat_status
open_indexes(struct leat_indexed *indexed, const struct leat_index_kind *kind, unsigned threads, struct leat_mem *mem,
             const struct leat_log *log, struct leat_err *err)
{
	struct open_job job = {.kind = kind, .indexed = indexed, .log = log};
	size_t count = leat_files_count(indexed->files);
	enum leat_status status = LEAT_OK;

	indexed->index = leat_alloc_array(mem, count, sizeof(*indexed->index));
	indexed->first = leat_alloc_array(mem, count + 1, sizeof(*indexed->first));
	if (!indexed->index || !indexed->first)
		status = leat_fail_mem(err, mem, count * (sizeof(*indexed->index) + sizeof(*indexed->first)),
		                       "the indexes of the files");
	if (status == LEAT_OK)
		status = leat_parallel(mem, threads_for(indexed->files, threads), count, prepare, &job, err);
	if (status != LEAT_OK) {
		leat_indexed_close(indexed);
		return status;
	}
	if (job.built)
		leat_log(log, LEAT_LOG_INFO, "indexed %zu of %zu files", (size_t)job.built, count);
	count_samples(indexed, log);
	return LEAT_OK;
}

enum leat_status
leat_indexed_open_files(struct leat_indexed *indexed, const struct leat_index_kind *kind, struct leat_files *files,
                        unsigned threads, struct leat_mem *mem, const struct leat_log *log, struct leat_err *err)
{
	*indexed = (struct leat_indexed){.mem = mem, .files = files};
	return open_indexes(indexed, kind, threads, mem, log, err);
}

enum leat_status
leat_indexed_open(struct leat_indexed *indexed, const struct leat_index_kind *kind, struct leat_stores *stores,
                  const struct leat_strings *patterns, struct leat_files **files, unsigned threads,
                  struct leat_mem *mem, const struct leat_log *log, struct leat_err *err)
{
	enum leat_status status;

	*indexed = (struct leat_indexed){.mem = mem};
	status = leat_data_index_open(&indexed->data, files, kind, stores, patterns->value, patterns->count, mem, log,
	                              err);
	if (status == LEAT_AGAIN)
		status = leat_files_open(files, stores, patterns->value, patterns->count, mem, err);
	indexed->files = *files;
	if (status == LEAT_OK)
		status = open_indexes(indexed, kind, threads, mem, log, err);
	return status;
}

void
leat_indexed_close(struct leat_indexed *indexed)
{
	if (!indexed->mem)
		return;
	for (size_t i = 0; indexed->index && i < leat_files_count(indexed->files); i++)
		leat_index_free(&indexed->index[i]);
	leat_free(indexed->mem, indexed->index);
	leat_free(indexed->mem, indexed->first);
	leat_data_index_close(&indexed->data);
	*indexed = (struct leat_indexed){0};
}

size_t
leat_indexed_first_file(const struct leat_indexed *indexed)
{
	size_t i = 0;

	while (!indexed->index[i].count)
		i++;
	return i;
}

/* ---- indexing ahead of the first open ---- */

struct report_job {
	struct leat_files *files;
	const struct leat_index_kind *(*kind_of)(const char *uri);
	struct leat_mem *mem;
	const struct leat_log *log;
	struct leat_index_report *report;
	struct leat_data_index_file *of; /* to be saved together; NULL: each by itself */
};

static void
sum_up(struct leat_index_report *report, const struct leat_index *index)
{
	report->samples = index->count - index->damaged;
	report->damaged = index->damaged;
	for (uint64_t i = 0; index->damaged && i < index->count; i++)
		if (leat_index_is_damaged(index, i))
			report->damaged_bytes += leat_index_length(index, i);
}

/* Moves the index to where it is saved from. */
static enum leat_status
keep_index(struct report_job *job, size_t i, struct leat_index *index, struct leat_err *err)
{
	struct leat_data_index_file *of = &job->of[i];

	of->kind = job->kind_of(job->report[i].uri);
	of->index = leat_alloc(job->mem, sizeof(*of->index));
	if (!of->index)
		return leat_fail_mem(err, job->mem, sizeof(*of->index), "an index");
	*of->index = *index;
	*index = (struct leat_index){0};
	return LEAT_OK;
}

static enum leat_status
report_file(void *arg, size_t i, struct leat_err *err)
{
	struct report_job *job = arg;
	struct leat_index_report *report = &job->report[i];
	struct leat_index index = {0};
	enum leat_status status = LEAT_OK;
	struct leat_err why;

	leat_err_clear(&why);
	report->uri = leat_files_at(job->files, i)->uri;
	report->bytes = leat_files_at(job->files, i)->size;
	if (load_or_make(job->kind_of(report->uri), job->files, i, job->mem, job->log, &index, &report->state, &why,
	                 &why) == LEAT_OK) {
		sum_up(report, &index);
		if (job->of && report->state == LEAT_INDEX_UNSAVED)
			report->state = LEAT_INDEX_BUILT; /* it is saved with the others */
		if (job->of)
			status = keep_index(job, i, &index, err);
	} else {
		report->state = LEAT_INDEX_FAILED;
	}
	leat_index_free(&index);
	if (status != LEAT_OK || (report->state != LEAT_INDEX_UNSAVED && report->state != LEAT_INDEX_FAILED))
		return status;
	report->reason = leat_strdup(job->mem, why.text);
	return report->reason ? LEAT_OK : leat_fail_mem(err, job->mem, sizeof(why.text), "a report");
}

static void
free_job(struct report_job *job)
{
	for (size_t i = 0; i < leat_files_count(job->files); i++) {
		if (job->report)
			leat_free(job->mem, (char *)job->report[i].reason);
		if (job->of && job->of[i].index) {
			leat_index_free(job->of[i].index);
			leat_free(job->mem, job->of[i].index);
		}
	}
	leat_free(job->mem, job->of);
	leat_free(job->mem, job->report);
	leat_files_close(job->files);
}

static enum leat_status
run_job(struct report_job *job, bool together, unsigned threads, struct leat_err *err)
{
	size_t files = leat_files_count(job->files);

	job->report = leat_alloc_array(job->mem, files, sizeof(*job->report));
	if (together)
		job->of = leat_alloc_array(job->mem, files, sizeof(*job->of));
	if (!job->report || (together && !job->of))
		return leat_fail_mem(err, job->mem, files * sizeof(*job->report), "the reports");
	return leat_parallel(job->mem, threads_for(job->files, threads), files, report_file, job, err);
}

enum leat_status
leat_index_files(const char *const *patterns, size_t count, const struct leat_index_kind *(*kind_of)(const char *uri),
                 unsigned threads, const struct leat_storage *storage, struct leat_mem *mem, const struct leat_log *log,
                 void (*tell)(void *arg, const struct leat_index_report *report), void *arg, char **saved,
                 struct leat_err *err)
{
	struct report_job job = {.kind_of = kind_of, .mem = mem, .log = log};
	struct leat_stores stores;
	enum leat_status status;
	bool together, all = true;
	char *unwanted = NULL;

	saved = saved ? saved : &unwanted;
	*saved = NULL;
	leat_stores_init(&stores, mem);
	stores.storage = storage;
	together = leat_data_index_is_for(&stores, patterns, count, mem);
	status = leat_files_open(&job.files, &stores, patterns, count, mem, err);
	if (status == LEAT_OK)
		status = run_job(&job, together, threads, err);
	for (size_t i = 0; status == LEAT_OK && i < leat_files_count(job.files); i++) {
		all &= job.report[i].state != LEAT_INDEX_FAILED;
		tell(arg, &job.report[i]);
	}
	if (status == LEAT_OK && together && all)
		status = leat_data_index_save(&stores, patterns, count, job.files, job.of, mem, saved, err);
	leat_free(mem, unwanted);
	free_job(&job);
	leat_stores_close(&stores);
	return status;
}
