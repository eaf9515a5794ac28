/* sidecar.c - see sidecar.h */
#include "format/sidecar.h"

#include <stddef.h>
#include <string.h>

enum { CRC_FROM = offsetof(struct leat_sidecar_head, kind) };

_Static_assert(sizeof(struct leat_sidecar_head) == 64, "the layout of the file");

static const char zeros[8];

/* Bytes between the end of a section and the next. */
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
	for (size_t i = 0; i < sidecar->sections; i++)
		leat_free(sidecar->mem, sidecar->section[i].block);
	if (sidecar->mem) {
		leat_free(sidecar->mem, sidecar->path);
		leat_free(sidecar->mem, sidecar->bytes);
	}
	*sidecar = (struct leat_sidecar){0};
}

void
leat_sidecar_add_take(struct leat_sidecar *sidecar, void *block, uint64_t bytes)
{
	void *trimmed = leat_realloc_raw(sidecar->mem, block, bytes); /* it may have room for more */

	block = trimmed ? trimmed : block;
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
		return "it is truncated";
	if (memcmp(head->magic, LEAT_SIDECAR_MAGIC, sizeof(head->magic)) != 0)
		return "it is not an index of a list";
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

/* Argument of leat_beside_load. */
struct load {
	struct leat_sidecar *sidecar;
	const struct leat_sidecar_of *of;
};

static const char *
fault_of(void *arg, const void *bytes, size_t len, bool *stale)
{
	struct load *load = arg;

	return leat_sidecar_read(load->sidecar, load->of, bytes, len, stale);
}

enum leat_status
leat_sidecar_load(struct leat_sidecar *sidecar, const struct leat_sidecar_of *of, struct leat_mem *mem,
                  const struct leat_log *log, struct leat_err *err)
{
	struct load load = {sidecar, of};
	enum leat_status status;
	void *bytes = NULL;
	char *path = NULL;

	leat_sidecar_init(sidecar, mem);
	status = leat_beside_load(of->store, of->data, of->place, fault_of, &load, mem, log, &bytes, &path, err);
	if (status != LEAT_OK)
		leat_sidecar_init(sidecar, mem); /* drop what a rejected file left */
	sidecar->path = path;
	sidecar->bytes = bytes;
	return status;
}

/* ---- writing ---- */

/* Calls `piece` for all bytes of the file after its head, in order. */
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
	return leat_write(arg, bytes, len, err);
}

/* Argument of leat_beside_save. */
struct save {
	struct leat_sidecar_head head;
	const struct leat_sidecar *sidecar;
};

static enum leat_status
write_sidecar(void *arg, struct leat_writer *out, struct leat_err *err)
{
	const struct save *save = arg;
	enum leat_status status = leat_write(out, &save->head, sizeof(save->head), err);

	return status == LEAT_OK ? for_each_piece(save->sidecar, write_piece, out, err) : status;
}

enum leat_status
leat_sidecar_save(struct leat_sidecar *sidecar, const struct leat_sidecar_of *of, struct leat_err *err)
{
	struct save save = {
		.head = {.version = LEAT_SIDECAR_VERSION, .sections = sidecar->sections},
		.sidecar = sidecar,
	};
	struct leat_sidecar_head *head = &save.head;

	memcpy(head->magic, LEAT_SIDECAR_MAGIC, sizeof(head->magic));
	memcpy(head->key, of->key, sizeof(head->key));
	set_kind(head->kind, of->kind);
	head->crc = leat_crc32c(0, head->kind, sizeof(*head) - CRC_FROM);
	for_each_piece(sidecar, sum_piece, &head->crc, NULL);
	return leat_beside_save(of->store, of->data, of->place, write_sidecar, &save, sidecar->mem, &sidecar->path,
	                        err);
}

bool
leat_sidecar_remove(const struct leat_sidecar *sidecar, struct leat_store *store)
{
	if (leat_stores_find(store->stores, sidecar->path, &store, NULL, NULL) != LEAT_OK)
		return false;
	leat_store_remove(store, sidecar->path, NULL);
	return leat_what_is(store, sidecar->path) == LEAT_IS_NOTHING;
}
