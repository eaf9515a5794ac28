/* record.c - see record.h */
#include "feed/feed.h"
#include "record.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "format/npy_write.h"
#include "leat.h"

enum {
	MAX_FILES = 4000,
	MAX_DATA = 64 << 20, /* bytes of one folder; tests with more are about size, not about bytes */
	MAX_SPEC = 8192,
	NAME = 17, /* digits of a hash, and the end */
};

/* The linker's names for the functions themselves and for what is called instead of them. */
enum leat_status __real_leat_open(const char *spec, const struct leat_options *options, struct leat_feed **feed,
                                  struct leat_err *err);
enum leat_status __wrap_leat_open(const char *spec, const struct leat_options *options, struct leat_feed **feed,
                                  struct leat_err *err);
enum leat_status __real_leat_feed_open(const char *spec, const struct leat_options *options,
                                       enum leat_batching batching, long fail_after, struct leat_feed **feed,
                                       struct leat_err *err);
enum leat_status __wrap_leat_feed_open(const char *spec, const struct leat_options *options,
                                       enum leat_batching batching, long fail_after, struct leat_feed **feed,
                                       struct leat_err *err);

/* ---- a copy of a folder ---- */

/* What nftw found; it hands no argument on. Some tests open feeds on several threads. */
static pthread_mutex_t tree_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char *path[MAX_FILES];
	size_t count;
	off_t bytes;
	bool unfit; /* something that cannot be copied */
} tree;

/* Indexes, manifests and caches follow from the data, and come and go while a test runs. What the tests of the command
 * write beside their data, such as checkpoints, is no data, either. */
static bool
is_no_data(const char *path, const char *name, int level)
{
	const char *dot = strrchr(name, '.');

	return strstr(name, ".leatidx") || strstr(name, ".leatset") || strstr(name, ".leatcache") ||
	       (path[0] == '.' && level == 1 && dot && (strcmp(dot, ".json") == 0 || strcmp(dot, ".txt") == 0));
}

static int
note(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (ftw->level == 0 || is_no_data(path, path + ftw->base, ftw->level))
		return 0;
	tree.bytes += S_ISREG(st->st_mode) ? st->st_size : 0;
	if ((type != FTW_F && type != FTW_D) || (type == FTW_F && !S_ISREG(st->st_mode)) || tree.count == MAX_FILES ||
	    tree.bytes > MAX_DATA) {
		tree.unfit = true;
		return 1;
	}
	tree.path[tree.count] = strdup(path);
	tree.unfit |= !tree.path[tree.count++];
	return 0;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
forget_tree(void)
{
	while (tree.count > 0)
		free(tree.path[--tree.count]);
	tree.bytes = 0;
	tree.unfit = false;
}

static bool
find_tree(const char *root)
{
	forget_tree();
	if (nftw(root, note, 16, FTW_PHYS) != 0 || tree.unfit)
		return false;
	qsort(tree.path, tree.count, sizeof *tree.path, by_name);
	return true;
}

/* A whole file, to be freed; NULL: it cannot be read, or is a folder. */
static char *
read_file(const char *path, size_t *len)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *bytes = NULL;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (bytes = malloc((size_t)st.st_size + 1)) != NULL)
		*len = (size_t)pread(fd, bytes, (size_t)st.st_size, 0);
	if (fd >= 0)
		close(fd);
	return bytes;
}

static void
write_file(const char *path, const void *bytes, size_t len)
{
	FILE *file = fopen(path, "wb");

	if (file) {
		fwrite(bytes, 1, len, file);
		fclose(file);
	}
}

static void
end_name(struct leat_sha256 *sha, char name[NAME])
{
	uint8_t hash[LEAT_SHA256_BYTES];
	char hex[LEAT_SHA256_HEX];

	leat_sha256_end(sha, hash);
	leat_hex(hash, sizeof hash, hex);
	snprintf(name, NAME, "%.16s", hex);
}

/* What the folder is called, by what is in it. */
static void
name_tree(const char *root, char name[NAME])
{
	struct leat_sha256 *sha = leat_sha256_new();

	leat_sha256_reset(sha);
	for (size_t i = 0; i < tree.count; i++) {
		const char *relative = tree.path[i] + strlen(root);
		size_t len = 0;
		char *bytes = read_file(tree.path[i], &len);

		leat_sha256_add(sha, relative, strlen(relative) + 1);
		leat_sha256_add(sha, &(uint64_t){len}, sizeof(uint64_t));
		if (bytes)
			leat_sha256_add(sha, bytes, len);
		free(bytes);
	}
	end_name(sha, name);
	leat_sha256_free(sha);
}

static void
copy_tree(const char *root, const char *to)
{
	for (size_t i = 0; i < tree.count; i++) {
		char path[4096];
		size_t len;
		char *bytes = read_file(tree.path[i], &len);

		snprintf(path, sizeof path, "%s%s", to, tree.path[i] + strlen(root));
		if (bytes)
			write_file(path, bytes, len);
		else
			mkdir(path, 0777);
		free(bytes);
	}
}

/* FOLDER/NAME is a copy of `root`. */
static bool
keep_folder(const char *record, const char *root, char name[NAME])
{
	char to[2048];
	bool found;

	pthread_mutex_lock(&tree_lock);
	found = find_tree(root);
	if (found) {
		name_tree(root, name);
		snprintf(to, sizeof to, "%s/%s", record, name);
		if (mkdir(to, 0777) == 0)
			copy_tree(root, to);
	}
	forget_tree();
	pthread_mutex_unlock(&tree_lock);
	return found;
}

/* ---- a spec ---- */

/* The next folder named in `text` whose data belongs to a test: its beginning, and its length. */
static const char *
find_root(const char *text, size_t *len)
{
	static const char temporary[] = "/leat-test-", golden[] = "tests/golden/";
	const char *found = strstr(text, temporary), *start;

	if (found) {
		start = found + sizeof temporary - 1;
		start += strspn(start, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
	} else if ((found = strstr(text, golden)) != NULL) {
		start = found + sizeof golden - 1;
		start += strcspn(start, "/'\"");
	} else {
		return NULL;
	}
	*len = (size_t)(start - text);
	for (start = found; start > text && !strchr("'\"= (,", start[-1]); start--)
		;
	*len -= (size_t)(start - text);
	return start;
}

/* Puts @/NAME in the place of each folder, which is copied. */
static bool
keep_data(const char *record, char *spec, char folder[NAME])
{
	const char *root;
	size_t len;

	snprintf(folder, NAME, "-");
	if (strchr(spec, '@'))
		return false;
	if (!find_root(spec, &len)) /* relative paths, as the tests of the command have them */
		return access("meson.build", F_OK) == 0 || keep_folder(record, ".", folder);
	while ((root = find_root(spec, &len)) != NULL) {
		char path[2048], name[NAME], rest[MAX_SPEC];
		size_t at = (size_t)(root - spec);

		snprintf(path, sizeof path, "%.*s", (int)len, root);
		snprintf(rest, sizeof rest, "%s", root + len);
		if (!keep_folder(record, path, name))
			return false;
		snprintf(spec + at, MAX_SPEC - at, "@/%s%s", name, rest);
	}
	return true;
}

static void
add_line(const char *record, const char *folder, const struct leat_options *options, const char *spec)
{
	static const char *const on_error[] = {"fail", "skip", "replace"};
	bool alone = options->world <= 0 || options->rank < 0;
	char path[2048], line[MAX_SPEC + 200];
	int len, fd;

	len = snprintf(line, sizeof line, "- %s %" PRIu64 " %d %d/%d %s %s\n", folder, options->seed,
	               options->epochs == 1 ? 1 : 2, alone ? 0 : options->rank, alone ? 1 : options->world,
	               on_error[options->on_error], spec);
	snprintf(path, sizeof path, "%s/specs.txt", record);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fd >= 0) {
		if (write(fd, line, (size_t)len) != len)
			perror(path);
		close(fd);
	}
}

/* Keeps the data of a spec, and its text with `more` behind it, to be added once it is open. */
static bool
keep_spec(const char *record, const char *spec, const char *more, char text[MAX_SPEC], char folder[NAME])
{
	if (!record || !spec || strlen(spec) >= MAX_SPEC - 1000)
		return false;
	snprintf(text, MAX_SPEC, "%s%s", spec, more);
	for (char *c = text; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	return keep_data(record, text, folder);
}

static void
add_spec(const char *record, const char *folder, const struct leat_options *options, const char *text)
{
	struct leat_options plain;

	if (options && options->function_count > 0)
		return; /* no list can hold a function */
	leat_options_init(&plain);
	add_line(record, folder, options ? options : &plain, text);
}

void (*record_opened)(const char *spec);

enum leat_status
__wrap_leat_open(const char *spec, const struct leat_options *options, struct leat_feed **feed, struct leat_err *err)
{
	const char *record = getenv("LEAT_RECORD");
	char text[MAX_SPEC], folder[NAME];
	bool kept = keep_spec(record, spec, "", text, folder); /* before: the feed may write beside its data */
	enum leat_status status = __real_leat_open(spec, options, feed, err);

	if (record_opened)
		record_opened(spec);
	if (kept && status == LEAT_OK)
		add_spec(record, folder, options, text);
	return status;
}

/* Commands that need no batch: the list has the spec with batch(1). */
enum leat_status
__wrap_leat_feed_open(const char *spec, const struct leat_options *options, enum leat_batching batching,
                      long fail_after, struct leat_feed **feed, struct leat_err *err)
{
	const char *record = batching == LEAT_BATCH_OPTIONAL && fail_after < 0 ? getenv("LEAT_RECORD") : NULL;
	const char *more = spec && strstr(spec, "batch(") ? "" : " | batch(1)";
	char text[MAX_SPEC], folder[NAME];
	bool kept = keep_spec(record, spec, more, text, folder);
	enum leat_status status = __real_leat_feed_open(spec, options, batching, fail_after, feed, err);

	if (kept && status == LEAT_OK)
		add_spec(record, folder, options, text);
	return status;
}

/* ---- one sample ---- */

/* FOLDER/NAME/x.npy has one row, the sample; or list.csv names x, a file with its bytes. */
static void
write_sample(const char *folder, const struct leat_datum *datum, bool bytes)
{
	int64_t shape[1 + LEAT_MAX_DIMS] = {1};
	char path[4096], head[LEAT_NPY_HEAD];
	FILE *file;

	snprintf(path, sizeof path, "%s/%s", folder, bytes ? "x" : "x.npy");
	file = fopen(path, "wb");
	if (!file)
		return;
	memcpy(shape + 1, datum->shape, (size_t)datum->ndim * sizeof *shape);
	if (!bytes)
		fwrite(head, 1, leat_npy_head(head, datum->dtype, datum->ndim + 1, shape, 1), file);
	fwrite(datum->data, 1, leat_datum_bytes(datum), file);
	fclose(file);
	snprintf(path, sizeof path, "%s/list.csv", folder);
	if (bytes)
		write_file(path, "path\nx\n", 7);
}

void
record_bench(const struct leat_datum *datum, bool bytes, const char *ops)
{
	const char *record = getenv("LEAT_RECORD");
	struct leat_options options;
	struct leat_sha256 *sha;
	char name[NAME], folder[2048], spec[MAX_SPEC];

	if (!record || datum->dtype == LEAT_BF16 || datum->ndim >= LEAT_MAX_DIMS)
		return;
	sha = leat_sha256_new();
	leat_sha256_reset(sha);
	leat_sha256_add(sha, &(int64_t[]){datum->dtype, datum->ndim, bytes}, 3 * sizeof(int64_t));
	leat_sha256_add(sha, datum->shape, (size_t)datum->ndim * sizeof *datum->shape);
	leat_sha256_add(sha, datum->data, leat_datum_bytes(datum));
	end_name(sha, name);
	leat_sha256_free(sha);
	snprintf(folder, sizeof folder, "%s/%s", record, name);
	if (mkdir(folder, 0777) == 0)
		write_sample(folder, datum, bytes);
	snprintf(spec, sizeof spec,
	         bytes ? "list('@/%s/list.csv') | repeat(3) | %s | batch(2)"
	               : "npy(x='@/%s/x.npy') | repeat(3) | %s | batch(2)",
	         name, ops);
	leat_options_init(&options);
	options.seed = 7;
	add_line(record, "-", &options, spec);
}
