/* filelist.c - what sources share whose samples are files */
#include "format/filelist.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* So long after a change another may come and yet have the same time, in ns. */
enum { SAME_TIME = 100000000 };

/* ---- from a sidecar ---- */

static bool
read_names(struct leat_filelist *list)
{
	if (list->name_at[0] != 0 || list->name_at[list->count] != list->names_len)
		return false;
	for (uint64_t i = 0; i < list->count; i++) {
		uint64_t len = list->name_at[i + 1] - list->name_at[i];

		if (list->name_at[i + 1] < list->name_at[i])
			return false;
		if (len > list->longest)
			list->longest = len;
	}
	return true;
}

static void
read_sizes(struct leat_filelist *list)
{
	for (uint64_t i = 0; i < list->count; i++) {
		if (list->size[i] == LEAT_NO_FILE)
			list->missing++;
		else if (list->size[i] > list->max_size)
			list->max_size = list->size[i];
	}
}

bool
leat_filelist_read(struct leat_filelist *list, const struct leat_sidecar *sidecar)
{
	const struct leat_section *section = sidecar->section;

	*list = (struct leat_filelist){0};
	if (sidecar->sections < LEAT_FILELIST_SECTIONS)
		return false;
	list->count = section[LEAT_FILELIST_SIZES].bytes / sizeof(*list->size);
	list->name_at = section[LEAT_FILELIST_NAME_AT].data;
	list->names = section[LEAT_FILELIST_NAMES].data;
	list->names_len = section[LEAT_FILELIST_NAMES].bytes;
	list->size = section[LEAT_FILELIST_SIZES].data;
	list->digest = section[LEAT_FILELIST_DIGEST].data;
	list->stamp = section[LEAT_FILELIST_STAMP].data;
	if (list->count == 0 || list->count > UINT32_MAX ||
	    section[LEAT_FILELIST_SIZES].bytes != list->count * sizeof(*list->size) ||
	    section[LEAT_FILELIST_NAME_AT].bytes != (list->count + 1) * sizeof(*list->name_at) ||
	    section[LEAT_FILELIST_DIGEST].bytes != LEAT_SHA256_BYTES ||
	    section[LEAT_FILELIST_STAMP].bytes != LEAT_SHA256_BYTES || !read_names(list))
		return false;
	read_sizes(list);
	return list->max_size <= INT64_MAX;
}

/* The size of a file below `folder`, and when it was written last. */
static uint64_t
look(int folder, const char *name, uint64_t *time)
{
	struct stat st;

	*time = 0;
	if (fstatat(folder, name, &st, 0) != 0 || !S_ISREG(st.st_mode))
		return LEAT_NO_FILE;
	*time = (uint64_t)st.st_mtim.tv_sec * 1000000000 + (uint64_t)st.st_mtim.tv_nsec;
	return (uint64_t)st.st_size;
}

bool
leat_filelist_found(const struct leat_filelist *list, int folder)
{
	for (uint64_t i = 0; list->missing && i < list->count; i++) {
		uint64_t len = list->name_at[i + 1] - list->name_at[i];
		char name[LEAT_URI];
		uint64_t time;

		if (list->size[i] != LEAT_NO_FILE || len >= sizeof(name))
			continue;
		memcpy(name, list->names + list->name_at[i], (size_t)len);
		name[len] = '\0';
		if (look(folder, name, &time) != LEAT_NO_FILE)
			return true;
	}
	return false;
}

int64_t
leat_filelist_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void
leat_filelist_keep(const struct leat_source *source, struct leat_sidecar *sidecar, const struct leat_sidecar_of *of,
                   const char *name, int64_t newest, int64_t begin)
{
	struct leat_err unsaved;

	leat_err_clear(&unsaved);
	if (newest > begin - SAME_TIME)
		leat_log(source->log, LEAT_LOG_INFO, "'%s' was changed just now: its index is not kept this time",
		         name);
	else if (leat_sidecar_save(sidecar, of, &unsaved) != LEAT_OK)
		leat_log(source->log, LEAT_LOG_WARN, "an index could not be saved, and is made again at each start: %s",
		         unsaved.text);
	else
		leat_log(source->log, LEAT_LOG_INFO, "made the index of '%s'", name);
}

char *
leat_filelist_remedy(const struct leat_sidecar *sidecar, struct leat_mem *mem)
{
	if (sidecar->path)
		return leat_asprintf(mem, "delete '%s' to have the files looked at again", sidecar->path);
	return leat_strdup(mem, "open the feed again");
}

/* ---- as a source ---- */

enum leat_status
leat_filelist_open(const struct leat_filelist *list, struct leat_source *source, const char *folder, const char *remedy,
                   struct leat_err *err)
{
	struct leat_file_list files = {
		.folder = folder,
		.count = (size_t)list->count,
		.names = list->names,
		.names_len = list->names_len,
		.name_at = list->name_at,
		.size = list->size,
		.remedy = remedy,
	};

	source->count = list->count;
	source->max_length = source->max_payload = list->max_size;
	source->stamp = list->stamp;
	return leat_files_open_list(&source->files, &files, source->mem, err);
}

void
leat_filelist_locate(const struct leat_filelist *list, uint64_t i, struct leat_extent *extent)
{
	uint64_t size = list->size[i];

	*extent = (struct leat_extent){.file = (uint32_t)i, .length = size};
	/* Missing; or the sidecar is a mapped file that was written to: buffers are sized by the largest. */
	if (size > list->max_size) {
		extent->damaged = true;
		extent->length = 0;
	}
}

/* Why there is no file. */
static enum leat_status
describe_missing(const struct leat_files *files, size_t i, struct leat_err *err)
{
	char buf[LEAT_URI];
	const char *uri = leat_files_uri(files, i, buf);
	struct stat st;

	if (stat(uri, &st) != 0)
		return leat_fail_errno(err, errno, "cannot open '%s'", uri);
	if (!S_ISREG(st.st_mode))
		return leat_fail(err, LEAT_DATA, "'%s' is no regular file", uri);
	return leat_fail(err, LEAT_DATA, "'%s' was not there when the feed was opened", uri);
}

enum leat_status
leat_filelist_unpack(const struct leat_source *source, const struct leat_extent *extent, unsigned char *payload,
                     struct leat_datum *datum, struct leat_err *err)
{
	if (extent->damaged)
		return describe_missing(source->files, extent->file, err);
	*datum = (struct leat_datum){
		.data = payload,
		.dtype = LEAT_U8,
		.ndim = 1,
		.shape = {(int64_t)extent->length},
	};
	return LEAT_OK;
}

enum leat_status
leat_filelist_name(const struct leat_filelist *list, uint64_t i, struct leat_datum *datum, struct leat_err *err)
{
	uint64_t begin = list->name_at[i], len = list->name_at[i + 1] - begin;

	/* Once more: it may be a mapped file that was written to. */
	if (len > list->longest || begin > list->names_len - len)
		return leat_fail(err, LEAT_DATA, "the name of file %llu is not what it was", (unsigned long long)i);
	*datum = (struct leat_datum){
		.data = (void *)(list->names + begin),
		.dtype = LEAT_U8,
		.ndim = 1,
		.shape = {(int64_t)len},
		.borrowed = true,
	};
	return LEAT_OK;
}

/* ---- making one ---- */

void
leat_filelist_build_init(struct leat_filelist_build *build, struct leat_mem *mem)
{
	*build = (struct leat_filelist_build){.mem = mem};
	leat_str_init(&build->names, mem, SIZE_MAX / 4);
}

void
leat_filelist_build_free(struct leat_filelist_build *build)
{
	if (!build->mem)
		return;
	leat_str_free(&build->names);
	leat_free(build->mem, build->name_at);
	leat_free(build->mem, build->size);
	leat_free(build->mem, build->time);
	*build = (struct leat_filelist_build){0};
}

/* Room for `more` files. */
static enum leat_status
grow(struct leat_filelist_build *build, size_t more, struct leat_err *err)
{
	uint64_t **array[] = {&build->name_at, &build->size, &build->time};
	size_t cap = build->cap ? build->cap : 64;

	while (cap < build->count + more)
		cap *= 2;
	for (size_t i = 0; i < 3 && cap != build->cap; i++) {
		uint64_t *grown = leat_realloc(build->mem, *array[i], (cap + 1) * sizeof(*grown));

		if (!grown)
			return leat_fail_mem(err, build->mem, (cap + 1) * sizeof(*grown), "the list of files");
		*array[i] = grown;
	}
	build->cap = cap;
	return LEAT_OK;
}

enum leat_status
leat_filelist_add(struct leat_filelist_build *build, const char *name, size_t len, struct leat_err *err)
{
	enum leat_status status = grow(build, 1, err);

	if (status != LEAT_OK)
		return status;
	leat_str_addn(&build->names, name, len);
	if (build->names.failed)
		return leat_fail_mem(err, build->mem, build->names.len + len, "the names of the files");
	build->name_at[++build->count] = build->names.len;
	return LEAT_OK;
}

enum leat_status
leat_filelist_append(struct leat_filelist_build *build, struct leat_filelist_build *from, struct leat_err *err)
{
	enum leat_status status = grow(build, from->count, err);
	uint64_t begin = build->names.len;

	if (status != LEAT_OK)
		return status;
	leat_str_addn(&build->names, leat_str_text(&from->names), from->names.len);
	if (build->names.failed)
		return leat_fail_mem(err, build->mem, build->names.len + from->names.len, "the names of the files");
	for (size_t i = 0; i < from->count; i++) {
		build->size[build->count] = from->size[i];
		build->time[build->count++] = from->time[i];
		build->name_at[build->count] = begin + from->name_at[i + 1];
	}
	leat_filelist_build_free(from);
	return LEAT_OK;
}

void
leat_filelist_look(struct leat_filelist_build *build, size_t i, int folder, const char *name)
{
	build->size[i] = look(folder, name, &build->time[i]);
}

/* Of names, sizes and `more`; and of times. */
static enum leat_status
make_digests(const struct leat_filelist_build *build, const void *more, size_t more_len, uint8_t *digest,
             uint8_t *stamp, struct leat_err *err)
{
	struct leat_sha256 *sha = leat_sha256_new();
	const char *names = leat_str_text(&build->names);

	if (!sha || leat_sha256(build->time, build->count * sizeof(*build->time), stamp) != 0) {
		leat_sha256_free(sha);
		return leat_fail(err, LEAT_NOMEM, "no memory for the fingerprint of the data");
	}
	leat_fingerprint_number(sha, build->count);
	for (size_t i = 0; i < build->count; i++) {
		leat_fingerprint_text(sha, names + build->name_at[i],
		                      (size_t)(build->name_at[i + 1] - build->name_at[i]));
		leat_fingerprint_number(sha, build->size[i]);
	}
	leat_fingerprint_text(sha, more, more_len);
	leat_sha256_end(sha, digest);
	leat_sha256_free(sha);
	return LEAT_OK;
}

enum leat_status
leat_filelist_finish(struct leat_filelist_build *build, const void *more, size_t more_len, struct leat_sidecar *sidecar,
                     struct leat_err *err)
{
	uint8_t *digest = leat_alloc(build->mem, LEAT_SHA256_BYTES), *stamp = leat_alloc(build->mem, LEAT_SHA256_BYTES);
	uint64_t names_len = build->names.len;
	enum leat_status status;
	char *names = NULL;

	if (digest && stamp)
		status = make_digests(build, more, more_len, digest, stamp, err);
	else
		status = leat_fail_mem(err, build->mem, LEAT_SHA256_BYTES, "the fingerprint of the data");
	if (status == LEAT_OK) {
		names = leat_str_take(&build->names);
		if (!names)
			status = leat_fail_mem(err, build->mem, names_len, "the names of the files");
	}
	if (status != LEAT_OK) {
		leat_free(build->mem, digest);
		leat_free(build->mem, stamp);
		return status;
	}
	leat_sidecar_add_take(sidecar, build->name_at, (build->count + 1) * sizeof(*build->name_at));
	leat_sidecar_add_take(sidecar, names, names_len);
	leat_sidecar_add_take(sidecar, build->size, build->count * sizeof(*build->size));
	leat_sidecar_add_take(sidecar, digest, LEAT_SHA256_BYTES);
	leat_sidecar_add_take(sidecar, stamp, LEAT_SHA256_BYTES);
	build->name_at = build->size = NULL;
	return LEAT_OK;
}
