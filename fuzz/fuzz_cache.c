/* fuzz_cache.c - whatever a cache file holds, what comes out lies in it, and what is put in comes back
 *
 * The first byte says how much is made right, because otherwise little would get past it: 0, the file
 * is as given; 1, its header fits, with `used` as given; 2, so do sample numbers and checksums of what
 * the table names. Behind it: `used`, the table, and the room; or the whole file. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "feed/cache.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SAMPLES = 4, PAGE = 4096, ROOM_AT = 2 * PAGE, MOST = 64 * 1024, ENTRY = 64 };

#define KEY "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static char folder[64], path[256];
static uint8_t file[ROOM_AT + MOST];
static volatile unsigned sink;

static void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_cache: %s\n", what);
	abort();
}

static void
clean_up(void)
{
	unlink(path);
	rmdir(folder);
}

static void
make_folder(void)
{
	if (path[0])
		return;
	/* In memory, if possible: thousands of files a second. */
	snprintf(folder, sizeof folder, "%s/fuzz-cache-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	must(mkdtemp(folder) != NULL, "cannot make a folder");
	snprintf(path, sizeof path, "%s/%s.leatcache", folder, KEY);
	atexit(clean_up);
}

/* ---- the file ---- */

static void
mend_entry(size_t room, uint64_t sample)
{
	uint64_t place = leat_load64(file + PAGE + 8 * sample) - 1, bytes;
	uint8_t *entry;

	if (place >= room || place % 64 != 0 || room - place < ENTRY)
		return;
	entry = file + ROOM_AT + place;
	bytes = leat_load64(entry + 8);
	leat_store64(entry, sample);
	if (bytes >= ENTRY && bytes <= room - place)
		leat_store32(entry + 16, leat_crc32c(0, entry + ENTRY, (size_t)bytes - ENTRY));
}

/* Gives the file's size. */
static size_t
build(const uint8_t *data, size_t size, int how)
{
	size_t room = size > 8 + 8 * SAMPLES ? size - 8 - 8 * SAMPLES : 0;

	memset(file, 0, sizeof file);
	if (how == 0) {
		memcpy(file, data, size < sizeof file ? size : sizeof file);
		return size < sizeof file ? size : sizeof file;
	}
	room = room < MOST ? room : MOST;
	memcpy(file, "LEATCACH", 8);
	leat_store32(file + 8, 1);
	leat_store64(file + 16, SAMPLES);
	leat_store64(file + 24, room);
	memcpy(file + 32, KEY, sizeof KEY);
	if (room) {
		memcpy(file + 104, data, 8);
		memcpy(file + PAGE, data + 8, 8 * SAMPLES);
		memcpy(file + ROOM_AT, data + 8 + 8 * SAMPLES, room);
	}
	for (uint64_t i = 0; how == 2 && i < SAMPLES; i++)
		mend_entry(room, i);
	return ROOM_AT + room;
}

static void
write_file(size_t size)
{
	int fd = open(path, O_RDWR | O_CREAT, 0666);

	must(fd >= 0 && pwrite(fd, file, size, 0) == (ssize_t)size && ftruncate(fd, (off_t)size) == 0,
	     "cannot write the file");
	close(fd);
}

/* ---- what comes out ---- */

static void
make_schema(struct leat_schema *schema)
{
	struct leat_field *field;

	leat_schema_add(schema, "label", LEAT_I64);
	field = leat_schema_add(schema, "text", LEAT_U8);
	field->ndim = 1;
	field->shape[0] = -1;
	field = leat_schema_add(schema, "grid", LEAT_F32);
	field->ndim = 3;
	field->shape[0] = field->shape[2] = -1;
	field->shape[1] = 2;
}

static void
read_all(const struct leat_schema *schema, const struct leat_sample *sample, size_t most)
{
	size_t total = 0;

	must(sample->count == schema->count, "another number of fields");
	for (int f = 0; f < sample->count; f++) {
		const struct leat_datum *datum = &sample->field[f];
		size_t bytes = leat_datum_bytes(datum);

		must(bytes <= most - total, "more than the file has");
		total += bytes;
		must((uintptr_t)datum->data % 64 == 0 && datum->borrowed, "not aligned, or anyone's");
		for (int d = 0; d < datum->ndim; d++)
			must(schema->entry[f].field.shape[d] < 0 || schema->entry[f].field.shape[d] == datum->shape[d],
			     "another shape");
		for (size_t i = 0; i < bytes; i++)
			sink += ((const uint8_t *)datum->data)[i];
	}
}

static void
put_and_get(struct leat_cache *cache, uint64_t i)
{
	int64_t label = (int64_t)i + 1000;
	float grid[4] = {1, 2, 3, 4};
	char text[] = "some text";
	struct leat_sample in = {.count = 3}, out;

	in.field[0] = (struct leat_datum){.data = &label, .dtype = LEAT_I64};
	in.field[1] = (struct leat_datum){.data = text, .dtype = LEAT_U8, .ndim = 1, .shape = {9}};
	in.field[2] = (struct leat_datum){.data = grid, .dtype = LEAT_F32, .ndim = 3, .shape = {1, 2, 2}};
	leat_cache_put(cache, i, &in);
	if (!leat_cache_get(cache, i, &out))
		return; /* it was full */
	must(*(int64_t *)out.field[0].data == label && memcmp(out.field[1].data, text, 9) == 0 &&
	             memcmp(out.field[2].data, grid, sizeof grid) == 0,
	     "what was put in came back as another");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_schema_entry entries[3];
	struct leat_schema schema = {.capacity = 3, .entry = entries};
	struct leat_cache_options o = {
		.shared = true, .dir = folder, .size = 1 << 20, .samples = SAMPLES, .key = KEY, .schema = &schema};
	struct leat_cache *cache;
	struct leat_mem mem;
	bool had[SAMPLES];
	size_t bytes;

	if (size < 1)
		return 0;
	make_folder();
	make_schema(&schema);
	bytes = build(data + 1, size - 1, data[0] % 3);
	write_file(bytes);
	leat_mem_init(&mem, SIZE_MAX);
	must(leat_cache_open(&cache, &o, &mem, NULL, NULL) == LEAT_OK, "it cannot be opened");
	for (uint64_t i = 0; i < SAMPLES + 2; i++) {
		struct leat_sample sample;
		bool got = leat_cache_get(cache, i, &sample);

		if (got)
			read_all(&schema, &sample, 1 << 20);
		if (i < SAMPLES)
			had[i] = got;
	}
	for (uint64_t i = 0; i < SAMPLES; i++)
		if (!had[i])
			put_and_get(cache, i);
	leat_cache_close(cache);
	must(mem.used == 0, "memory is lost");
	return 0;
}
