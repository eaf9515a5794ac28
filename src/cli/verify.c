/* verify.c - see verify.h
 *
 * The checksums are those of the manifests (store/set.h). Opening the files already compares their names and sizes. */
#include "cli/verify.h"

#include <stdio.h>

#include "base/hash.h"
#include "base/size.h"
#include "base/threads.h"
#include "cli/print.h"
#include "store/set.h"

enum state { NO_CHECKSUM, SAME, DIFFERENT, STATES };

static const char *const state_text[STATES] = {"no checksum", "as written", "damaged"};

struct checked {
	enum state state;
	uint32_t crc; /* expected, unless NO_CHECKSUM */
};

struct job {
	struct leat_mem *mem;
	struct leat_files *files;
	struct checked *checked; /* of each file */
};

/* ---- what is expected ---- */

static void
expect(struct checked *checked, const struct leat_set *set, const char *uri)
{
	const char *slash = strrchr(uri, '/');
	const struct leat_set_file *file = leat_set_find(set, slash ? slash + 1 : uri);

	if (file)
		*checked = (struct checked){SAME, file->crc};
}

/* Files of one set follow each other, mostly. */
static enum leat_status
load_checksums(struct job *job, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	char *loaded = NULL;
	struct leat_set set;
	bool shards;

	leat_set_init(&set, job->mem);
	for (size_t i = 0; i < leat_files_count(job->files) && status == LEAT_OK; i++) {
		const struct leat_object *object = leat_files_at(job->files, i);
		char *uri = leat_set_uri(object->uri, &shards, job->mem);

		if (!uri) {
			status = leat_fail_mem(err, job->mem, object->uri_len + 16, "a file name");
			break;
		}
		if (!loaded || strcmp(loaded, uri) != 0) {
			leat_set_free(&set);
			status = leat_set_load(&set, object->store, uri, NULL, err);
			status = status == LEAT_AGAIN ? LEAT_OK : status;
		}
		leat_free(job->mem, loaded);
		loaded = uri;
		if (status == LEAT_OK)
			expect(&job->checked[i], &set, object->uri);
	}
	leat_free(job->mem, loaded);
	leat_set_free(&set);
	return status;
}

/* ---- what is there ---- */

static enum leat_status
checksum_file(const struct leat_object *object, struct leat_mem *mem, uint32_t *crc, struct leat_err *err)
{
	enum { PIECE = 1 << 20 };
	void *piece = leat_alloc(mem, PIECE);
	enum leat_status status = piece ? LEAT_OK : leat_fail_mem(err, mem, PIECE, "reading a file");

	*crc = 0;
	for (uint64_t at = 0; at < object->size && status == LEAT_OK; at += PIECE) {
		struct iovec iov = {piece, object->size - at < PIECE ? (size_t)(object->size - at) : PIECE};
		size_t got;

		status = leat_object_read(object, at, &iov, 1, 0, &got, err);
		if (status == LEAT_OK)
			*crc = leat_crc32c(*crc, piece, got);
	}
	leat_free(mem, piece);
	return status;
}

/* Any thread. */
static enum leat_status
check_file(void *arg, size_t i, struct leat_err *err)
{
	struct job *job = arg;
	struct checked *checked = &job->checked[i];
	enum leat_status status;
	uint32_t crc;

	if (checked->state == NO_CHECKSUM)
		return LEAT_OK;
	status = checksum_file(leat_files_at(job->files, i), job->mem, &crc, err);
	if (status == LEAT_OK && crc != checked->crc)
		checked->state = DIFFERENT;
	return status;
}

/* ---- the report ---- */

static enum leat_status
report(const struct job *job, bool quiet, struct leat_err *err)
{
	size_t count = leat_files_count(job->files), of[STATES] = {0};
	enum leat_status status;
	struct leat_table table;
	uint64_t bytes = 0;
	char size[32];

	leat_table_init(&table, job->mem, 3);
	table.right[0] = true;
	for (size_t i = 0; i < count; i++) {
		const struct leat_object *object = leat_files_at(job->files, i);
		enum state state = job->checked[i].state;

		of[state]++;
		bytes += state == NO_CHECKSUM ? 0 : object->size;
		if (quiet && state == SAME)
			continue;
		leat_str_add(leat_table_cell(&table), leat_format_size(size, sizeof(size), object->size));
		leat_str_add(leat_table_cell(&table), state_text[state]);
		leat_str_add(leat_table_cell(&table), object->uri);
	}
	status = leat_table_print(&table, stdout, err);
	if (status != LEAT_OK)
		return status;
	printf("%zu of %zu file%s as written, %s read\n", of[SAME], count, leat_plural(count),
	       leat_format_size(size, sizeof(size), bytes));
	if (of[DIFFERENT])
		return leat_fail(err, LEAT_DATA, "%zu of %zu files are damaged: restore them, or write them again",
		                 of[DIFFERENT], count);
	if (of[NO_CHECKSUM])
		return leat_fail(err, LEAT_DATA,
		                 "%zu of %zu files have no checksum: only those that 'leat convert' and 'leat pack' "
		                 "wrote have one",
		                 of[NO_CHECKSUM], count);
	return LEAT_OK;
}

enum leat_status
leat_verify(const char *const *patterns, size_t count, unsigned threads, bool quiet, const struct leat_storage *storage,
            struct leat_mem *mem, struct leat_err *err)
{
	struct job job = {.mem = mem};
	struct leat_stores stores;
	enum leat_status status;

	leat_stores_init(&stores, mem);
	stores.storage = storage;
	status = leat_files_open(&job.files, &stores, patterns, count, mem, err);
	if (status == LEAT_OK) {
		job.checked = leat_alloc_array(mem, leat_files_count(job.files), sizeof(*job.checked));
		if (!job.checked)
			status = leat_fail_mem(err, mem, leat_files_count(job.files), "the list of files");
	}
	if (status == LEAT_OK)
		status = load_checksums(&job, err);
	if (status == LEAT_OK)
		status = leat_parallel(mem, threads, leat_files_count(job.files), check_file, &job, err);
	if (status == LEAT_OK)
		status = report(&job, quiet, err);
	leat_free(mem, job.checked);
	leat_files_close(job.files);
	leat_stores_close(&stores);
	return status;
}
