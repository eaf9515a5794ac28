/* tar_index.c - scan a tar file for its samples
 *
 * If files are large, only headers are read. After an invalid header, the scan searches the
 * following multiples of 512 for the next valid one; everything in between becomes one damaged
 * region. An entry with invalid extended headers is treated the same way. Data that would extend
 * past the end of the file is damaged up to the end.
 *
 * Threads: each file is scanned by one thread, several files at once. */
#include "format/tar.h"

#include <string.h>

#include "base/str.h"
#include "format/window.h"

struct walk {
	struct leat_file_window window;
	struct leat_index *index;
	struct leat_tar tar;
	/* The current sample, which may have more entries: */
	bool open;
	uint64_t begin, end;
	size_t key_len;
	char key[LEAT_TAR_NAME];
};

/* Result of reading an entry and the extended headers before it. */
enum outcome { ENTRY, END, DAMAGE, CUT };

static bool
is_zero(const unsigned char *bytes, size_t len)
{
	while (len && !bytes[len - 1])
		len--;
	return len == 0;
}

/* Reads the header at *offset and moves past it. */
static enum leat_status
read_header(struct walk *walk, uint64_t *offset, enum outcome *outcome, struct leat_err *err)
{
	uint64_t left = walk->window.size - *offset;
	size_t need = left < LEAT_TAR_BLOCK ? (size_t)left : LEAT_TAR_BLOCK, have;
	const unsigned char *block;
	enum leat_status status = leat_file_window_look(&walk->window, *offset, need, &block, &have, err);

	if (status != LEAT_OK)
		return status;
	if (need < LEAT_TAR_BLOCK)
		*outcome = is_zero(block, need) ? END : CUT;
	else
		*outcome = leat_tar_header(&walk->tar, block) ? DAMAGE : ENTRY;
	*offset += need;
	return LEAT_OK;
}

/* A zero block ends the archive if another one, or nothing, follows. */
static enum leat_status
read_end(struct walk *walk, uint64_t *offset, enum outcome *outcome, struct leat_err *err)
{
	uint64_t next = *offset;
	enum leat_status status = read_header(walk, &next, outcome, err);

	if (status != LEAT_OK || *outcome == END)
		return status;
	if (*outcome == ENTRY && walk->tar.kind == LEAT_TAR_ZERO) {
		*outcome = END;
		*offset = next;
	} else {
		*outcome = DAMAGE; /* from the zero block to the next header, which may follow directly */
	}
	return LEAT_OK;
}

/* Reads the extended header at `offset`; *bad: it is invalid. */
static enum leat_status
read_extension(struct walk *walk, uint64_t offset, bool *bad, struct leat_err *err)
{
	const unsigned char *data;
	enum leat_status status;
	size_t have;

	if (walk->tar.size == 0)
		return LEAT_OK;
	status = leat_file_window_look(&walk->window, offset, (size_t)walk->tar.size, &data, &have, err);
	if (status == LEAT_OK && leat_tar_extension(&walk->tar, data))
		*bad = true;
	return status;
}

/* Reads one entry at *offset, including the extended headers before it, and moves past its data or, if it is damaged,
 * to where the next entry may begin. */
static enum leat_status
read_entry(struct walk *walk, uint64_t *offset, enum outcome *outcome, struct leat_err *err)
{
	struct leat_tar *tar = &walk->tar;
	enum leat_status status;
	bool bad = false;

	tar->has_name = tar->has_size = tar->sparse = false;
	do {
		status = read_header(walk, offset, outcome, err);
		if (status != LEAT_OK || *outcome != ENTRY)
			return status;
		if (tar->kind == LEAT_TAR_ZERO) {
			*outcome = DAMAGE;
			return bad ? LEAT_OK : read_end(walk, offset, outcome, err);
		}
		if (tar->size > walk->window.size - *offset) {
			*outcome = CUT;
			return LEAT_OK;
		}
		if (tar->kind == LEAT_TAR_EXTENSION)
			status = read_extension(walk, *offset, &bad, err);
		*offset += leat_tar_padded(tar);
		/* Some writers omit the padding of the last entry. */
		if (*offset > walk->window.size)
			*offset = walk->window.size;
	} while (status == LEAT_OK && tar->kind == LEAT_TAR_EXTENSION && *offset < walk->window.size);
	if (bad || tar->kind == LEAT_TAR_EXTENSION)
		*outcome = DAMAGE;
	leat_file_window_expect(&walk->window, tar->size);
	return status;
}

static enum leat_status
close_sample(struct walk *walk, struct leat_err *err)
{
	bool open = walk->open;

	walk->open = false;
	return open ? leat_index_add_span(walk->index, walk->begin, walk->end, false, err) : LEAT_OK;
}

/* Adds the file at [begin, end) to the current sample, or begins a new one. */
static enum leat_status
take_file(struct walk *walk, uint64_t begin, uint64_t end, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	size_t key;

	if (!leat_tar_split(walk->tar.name, walk->tar.len, &key))
		return LEAT_OK;
	if (!walk->open || key != walk->key_len || memcmp(walk->key, walk->tar.name, key) != 0) {
		status = close_sample(walk, err);
		walk->open = true;
		walk->begin = begin;
		walk->key_len = key;
		memcpy(walk->key, walk->tar.name, key);
	}
	walk->end = end;
	return status;
}

/* Finds the next header from `offset` on; the end of the file if there is none. */
static enum leat_status
find_header(struct walk *walk, uint64_t offset, uint64_t *found, struct leat_err *err)
{
	walk->window.search = true;
	while (walk->window.size - offset >= LEAT_TAR_BLOCK) {
		const unsigned char *block;
		enum leat_status status;
		size_t have;

		status = leat_file_window_look(&walk->window, offset, LEAT_TAR_BLOCK, &block, &have, err);
		if (status != LEAT_OK)
			return status;
		*found = offset;
		if (!leat_tar_header(&walk->tar, block) && walk->tar.kind != LEAT_TAR_ZERO)
			return LEAT_OK;
		offset += LEAT_TAR_BLOCK;
	}
	*found = walk->window.size;
	return LEAT_OK;
}

/* Adds the damage that begins at `begin` to the index, and moves to the next header from *offset on. */
static enum leat_status
step_over_damage(struct walk *walk, uint64_t begin, enum outcome outcome, uint64_t *offset, struct leat_err *err)
{
	enum leat_status status = close_sample(walk, err);

	if (status == LEAT_OK && outcome == DAMAGE)
		status = find_header(walk, *offset, offset, err);
	else
		*offset = walk->window.size;
	return status == LEAT_OK ? leat_index_add_span(walk->index, begin, *offset, true, err) : status;
}

/* For files that do not begin with a header. */
static enum leat_status
refuse_compressed(struct walk *walk, struct leat_err *err)
{
	static const struct {
		const char *name;
		size_t len;
		char magic[7];
	} known[] = {
		{"gzip", 2, "\x1f\x8b"},
		{"bzip2", 3, "BZh"},
		{"xz", 6, {'\xfd', '7', 'z', 'X', 'Z'}},
		{"zstd", 4, "\x28\xb5\x2f\xfd"},
		{"lz4", 4, "\x04\x22\x4d\x18"},
	};
	const unsigned char *bytes;
	enum leat_status status;
	size_t have;

	if (walk->window.size < sizeof(known[0].magic))
		return LEAT_OK;
	status = leat_file_window_look(&walk->window, 0, sizeof(known[0].magic), &bytes, &have, err);
	for (size_t i = 0; status == LEAT_OK && i < sizeof(known) / sizeof(known[0]); i++)
		if (memcmp(bytes, known[i].magic, known[i].len) == 0)
			status = leat_fail(err, LEAT_UNSUPPORTED,
			                   "'%s' is compressed (%s), which is not supported; decompress it first",
			                   walk->window.uri, known[i].name);
	return status;
}

static enum leat_status
refuse_sparse(const struct walk *walk, struct leat_err *err)
{
	char name[200];

	return leat_fail(
		err, LEAT_UNSUPPORTED,
		"'%s' contains the sparse file '%s', which is not supported; create the archive without --sparse",
		walk->window.uri, leat_show(name, sizeof(name), walk->tar.name, walk->tar.len));
}

/* No tar program reads past the end of an archive, but a user who appended data may expect it. */
static enum leat_status
warn_of_more(struct walk *walk, uint64_t offset, const struct leat_log *log, struct leat_err *err)
{
	const unsigned char *bytes;
	enum leat_status status;
	size_t have;

	if (offset >= walk->window.size)
		return LEAT_OK;
	walk->window.search = true;
	status = leat_file_window_look(&walk->window, offset, 1, &bytes, &have, err);
	for (size_t i = 0; status == LEAT_OK && i < have; i++) {
		if (bytes[i]) {
			leat_log(
				log, LEAT_LOG_WARN,
				"'%s' ends at offset %llu; ignoring the data after that. Was another archive appended?",
				walk->window.uri, (unsigned long long)offset);
			break;
		}
	}
	return status;
}

static enum leat_status
walk_entries(struct walk *walk, const struct leat_log *log, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	uint64_t offset = 0;

	while (status == LEAT_OK && offset < walk->window.size) {
		uint64_t begin = offset;
		enum outcome outcome;

		status = read_entry(walk, &offset, &outcome, err);
		if (status != LEAT_OK)
			break;
		if (outcome == END) {
			status = warn_of_more(walk, offset, log, err);
			break;
		}
		if (outcome != ENTRY) {
			status = begin ? LEAT_OK : refuse_compressed(walk, err);
			if (status == LEAT_OK)
				status = step_over_damage(walk, begin, outcome, &offset, err);
		} else if (walk->tar.kind == LEAT_TAR_SPARSE) {
			status = refuse_sparse(walk, err);
		} else if (walk->tar.kind == LEAT_TAR_FILE) {
			status = take_file(walk, begin, offset, err);
		}
	}
	if (status == LEAT_OK)
		status = close_sample(walk, err);
	return status == LEAT_OK ? leat_index_end(walk->index, walk->window.size, err) : status;
}

static enum leat_status
make_index(struct leat_files *files, size_t i, struct leat_mem *mem, const struct leat_log *log,
           struct leat_index *index, struct leat_err *err)
{
	struct walk *walk = leat_alloc(mem, sizeof(*walk));
	enum leat_status status;

	if (!walk)
		return leat_fail_mem(err, mem, sizeof(*walk), "reading a file's headers");
	leat_index_init(index, mem);
	walk->index = index;
	status = leat_file_window_open(&walk->window, files, i, mem, err);
	if (status == LEAT_OK)
		status = walk_entries(walk, log, err);
	if (status != LEAT_OK)
		leat_index_free(index);
	leat_file_window_close(&walk->window);
	leat_free(mem, walk);
	return status;
}

const struct leat_index_kind leat_tar_index = {
	.name = "tar",
	.min_length = LEAT_TAR_BLOCK,
	.gaps = true,
	.make = make_index,
};
