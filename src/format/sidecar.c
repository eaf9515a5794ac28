/* sidecar.c - arrays that were made of the data, kept beside it */
#include "format/sidecar.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format/beside.h"
#include "store/newfile.h"

enum { CRC_FROM = offsetof(struct leat_sidecar_head, kind) };

_Static_assert(sizeof(struct leat_sidecar_head) == 64, "the layout of the file");

static const char zeros[8];

/* The bytes between a section's end and the next. */
static size_t
padding(uint64_t bytes)
{
	return (size_t)(-bytes & 7);
}

static void
set_kind(char field[8], const char *kind)
{
	size_t len = strlen(kind);

	memset(field, 0, 8);
	memcpy(field, kind, len < 8 ? len : 8);
}

void
leat_sidecar_init(struct leat_sidecar *sidecar, struct leat_mem *mem)
{
	*sidecar = (struct leat_sidecar){.mem = mem};
}

void
leat_sidecar_free(struct leat_sidecar *sidecar)
{
	if (sidecar->map)
		munmap(sidecar->map, sidecar->map_size);
	for (size_t i = 0; i < sidecar->sections; i++)
		leat_free(sidecar->mem, sidecar->section[i].block);
	if (sidecar->mem)
		leat_free(sidecar->mem, sidecar->path);
	*sidecar = (struct leat_sidecar){0};
}

void
leat_sidecar_add_take(struct leat_sidecar *sidecar, void *block, uint64_t bytes)
{
	sidecar->section[sidecar->sections++] = (struct leat_section){block, bytes, block};
}

/* ---- reading ---- */

uint32_t
leat_sidecar_crc(const void *bytes, size_t len)
{
	return leat_crc32c(0, (const char *)bytes + CRC_FROM, len - CRC_FROM);
}

/* False: the sections do not fill the file exactly. */
static bool
find_sections(struct leat_sidecar *sidecar, const struct leat_sidecar_head *head, size_t len)
{
	const uint64_t *bytes = (const uint64_t *)(head + 1);
	const char *at = (const char *)(bytes + head->sections);
	uint64_t left = len - sizeof(*head) - head->sections * sizeof(*bytes);

	for (size_t i = 0; i < head->sections; i++) {
		if (bytes[i] > left || padding(bytes[i]) > left - bytes[i])
			return false;
		sidecar->section[i] = (struct leat_section){at, bytes[i], NULL};
		at += bytes[i] + padding(bytes[i]);
		left -= bytes[i] + padding(bytes[i]);
	}
	sidecar->sections = (size_t)head->sections;
	return left == 0;
}

const char *
leat_sidecar_read(struct leat_sidecar *sidecar, const struct leat_sidecar_of *of, const void *bytes, size_t len,
                  bool *stale)
{
	const struct leat_sidecar_head *head = bytes;
	char kind[8];

	*stale = false;
	set_kind(kind, of->kind);
	if (len < sizeof(*head))
		return "it is cut off";
	if (memcmp(head->magic, LEAT_SIDECAR_MAGIC, sizeof(head->magic)) != 0)
		return "it is no index of a list";
	if (head->version != LEAT_SIDECAR_VERSION)
		return "it has another version";
	if (memcmp(head->kind, kind, sizeof(kind)) != 0)
		return "it belongs to another source";
	if (memcmp(head->key, of->key, sizeof(head->key)) != 0) {
		*stale = true;
		return "the data or the options have changed";
	}
	if (head->sections > LEAT_SIDECAR_SECTIONS || head->sections > (len - sizeof(*head)) / sizeof(uint64_t))
		return "its length is wrong";
	if (head->crc != leat_sidecar_crc(bytes, len))
		return "its checksum does not match";
	return find_sections(sidecar, head, len) ? of->fault(of->arg, sidecar, stale) : "its length is wrong";
}

/* NULL: loaded. "": there is none. Else what is wrong with it. */
static const char *
load_from(struct leat_sidecar *sidecar, const struct leat_sidecar_of *of, const char *path, bool *stale)
{
	const char *fault = "it cannot be read";
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* in case it is a pipe */

	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ENAMETOOLONG ? "" : fault;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		sidecar->map_size = (size_t)st.st_size;
		sidecar->map = mmap(NULL, sidecar->map_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (sidecar->map == MAP_FAILED)
			sidecar->map = NULL;
	}
	if (sidecar->map)
		fault = leat_sidecar_read(sidecar, of, sidecar->map, sidecar->map_size, stale);
	close(fd);
	return fault;
}

enum leat_status
leat_sidecar_load(struct leat_sidecar *sidecar, const struct leat_sidecar_of *of, struct leat_mem *mem,
                  const struct leat_log *log, struct leat_err *err)
{
	for (enum leat_beside place = LEAT_BESIDE_DATA; place <= LEAT_BESIDE_CACHE; place++) {
		const char *fault;
		bool stale = false;

		leat_sidecar_init(sidecar, mem);
		sidecar->path = leat_beside(of->data, place, false, mem);
		if (!sidecar->path && place == LEAT_BESIDE_DATA)
			return leat_fail_mem(err, mem, strlen(of->data) + 16, "the name of an index");
		if (!sidecar->path)
			break;
		fault = load_from(sidecar, of, sidecar->path, &stale);
		if (!fault)
			return LEAT_OK;
		if (*fault)
			leat_log(log, stale ? LEAT_LOG_INFO : LEAT_LOG_WARN, "index '%s' is not used: %s",
			         sidecar->path, fault);
		leat_sidecar_free(sidecar);
	}
	leat_sidecar_init(sidecar, mem);
	return LEAT_AGAIN;
}

/* ---- writing ---- */

/* Calls `piece` for all bytes of the file behind its head, in order. */
static enum leat_status
for_each_piece(const struct leat_sidecar *sidecar,
               enum leat_status (*piece)(void *arg, const void *bytes, size_t len, struct leat_err *err), void *arg,
               struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < sidecar->sections && status == LEAT_OK; i++)
		status = piece(arg, &sidecar->section[i].bytes, sizeof(sidecar->section[i].bytes), err);
	for (size_t i = 0; i < sidecar->sections && status == LEAT_OK; i++) {
		const struct leat_section *section = &sidecar->section[i];

		status = piece(arg, section->data, (size_t)section->bytes, err);
		if (status == LEAT_OK)
			status = piece(arg, zeros, padding(section->bytes), err);
	}
	return status;
}

static enum leat_status
sum_piece(void *arg, const void *bytes, size_t len, struct leat_err *err)
{
	uint32_t *crc = arg;

	(void)err;
	*crc = leat_crc32c(*crc, bytes, len);
	return LEAT_OK;
}

static enum leat_status
write_piece(void *arg, const void *bytes, size_t len, struct leat_err *err)
{
	return leat_newfile_write(arg, bytes, len, err);
}

static enum leat_status
write_to(const char *path, const struct leat_sidecar_head *head, const struct leat_sidecar *sidecar,
         struct leat_err *err)
{
	struct leat_newfile out;
	enum leat_status status = leat_newfile_open(&out, path, sidecar->mem, err);

	if (status != LEAT_OK)
		return status;
	status = leat_newfile_write(&out, head, sizeof(*head), err);
	if (status == LEAT_OK)
		status = for_each_piece(sidecar, write_piece, &out, err);
	if (status == LEAT_OK)
		return leat_newfile_commit(&out, false, err); /* what a crash spoils is made again */
	leat_newfile_abort(&out);
	return status;
}

/* Takes the path. */
static void
swap_for_saved_take(struct leat_sidecar *sidecar, const struct leat_sidecar_of *of, char *path)
{
	struct leat_sidecar saved;
	bool stale;

	leat_sidecar_init(&saved, sidecar->mem);
	saved.path = path;
	if (load_from(&saved, of, path, &stale) == NULL) {
		leat_sidecar_free(sidecar);
		*sidecar = saved;
	} else {
		leat_sidecar_free(&saved);
	}
}

enum leat_status
leat_sidecar_save(struct leat_sidecar *sidecar, const struct leat_sidecar_of *of, struct leat_err *err)
{
	struct leat_sidecar_head head = {.version = LEAT_SIDECAR_VERSION, .sections = sidecar->sections};
	enum leat_status status = LEAT_IO;
	struct leat_err why[2];

	memcpy(head.magic, LEAT_SIDECAR_MAGIC, sizeof(head.magic));
	memcpy(head.key, of->key, sizeof(head.key));
	set_kind(head.kind, of->kind);
	head.crc = leat_crc32c(0, head.kind, sizeof(head) - CRC_FROM);
	for_each_piece(sidecar, sum_piece, &head.crc, NULL);
	for (enum leat_beside place = LEAT_BESIDE_DATA; place <= LEAT_BESIDE_CACHE && status != LEAT_OK; place++) {
		char *path = leat_beside(of->data, place, true, sidecar->mem);

		leat_err_clear(&why[place]);
		status = path ? write_to(path, &head, sidecar, &why[place])
		              : leat_fail(&why[place], LEAT_IO, "there is no cache folder");
		if (status == LEAT_OK)
			swap_for_saved_take(sidecar, of, path);
		else
			leat_free(sidecar->mem, path);
	}
	return status == LEAT_OK ? LEAT_OK
	                         : leat_fail(err, status, "%s, and in the cache folder: %s", why[0].text, why[1].text);
}
