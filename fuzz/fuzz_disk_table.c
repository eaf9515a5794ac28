/* fuzz_disk_table.c - whatever the table and a segment of a disk cache hold, reads are right and nothing crashes
 *
 * The input is laid over a valid table: pairs of an offset (3 bytes) and a byte. The first byte of the input says what
 * is done: bit 0, truncate the table at the last offset; bit 1, the folder was in use, so it is repaired; bit 2,
 * entries get a right checksum. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "store/disk_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { SIZE = 1 << 20, EXTENTS = 8, LENGTH = 3000 };

static char folder[64], path[128];
static uint8_t *image; /* a valid table */
static size_t image_size;

static void
must(int truth, const char *what)
{
	if (truth)
		return;
	fprintf(stderr, "fuzz_disk_table: %s\n", what);
	abort();
}

static void
clean_up(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	must(system(command) == 0, "cannot clean up");
}

static void
open_table(struct leat_disk_table *table)
{
	struct leat_disk_options options = {.folder = folder, .size = SIZE};

	must(leat_disk_table_open(table, &options, NULL) == LEAT_OK, "it cannot be opened");
}

static struct leat_disk_extent
extent_of(int i)
{
	return (struct leat_disk_extent){
		.key = {{1, (uint64_t)i % 2}}, .offset = (uint64_t)i * LENGTH, .length = LENGTH, .crc = (uint32_t)i};
}

static void
add(struct leat_disk_table *table)
{
	must(leat_disk_lock(table), "it cannot be locked");
	for (int i = 0; i < EXTENTS; i++) {
		struct leat_disk_extent extent = extent_of(i);

		if (leat_disk_reserve(table, LENGTH, &extent))
			leat_disk_record(table, &extent);
	}
	leat_disk_unlock(table);
}

static void
make_image(void)
{
	struct leat_disk_table table;
	int fd;

	snprintf(folder, sizeof(folder), "%s/fuzz-disk-XXXXXX", access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
	must(mkdtemp(folder) != NULL, "cannot make a folder");
	snprintf(path, sizeof(path), "%s/table", folder);
	atexit(clean_up);
	open_table(&table);
	add(&table);
	leat_disk_table_close(&table);
	fd = open(path, O_RDONLY);
	image_size = (size_t)lseek(fd, 0, SEEK_END);
	image = malloc(image_size);
	must(image && pread(fd, image, image_size, 0) == (ssize_t)image_size, "cannot read the table");
	close(fd);
}

/* Makes entries pass the first check, as one who means harm would. */
static void
mend(uint8_t *bytes)
{
	size_t at = leat_disk_entries_at(LEAT_DISK_MIN_HEADS);

	for (; at + sizeof(struct leat_disk_entry) <= image_size; at += sizeof(struct leat_disk_entry)) {
		uint64_t entry[6], words[6];

		memcpy(entry, bytes + at, sizeof(entry));
		memcpy(words, entry, 4 * sizeof(*words));
		words[4] = entry[5] >> 32;
		words[5] = entry[4];
		entry[5] = (entry[5] >> 32) << 32 | leat_crc32c(0x6c656174, words, sizeof(words));
		memcpy(bytes + at, entry, sizeof(entry));
	}
}

static void
write_table(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(image_size);
	size_t length = image_size, at = 0;
	int fd;

	must(bytes != NULL, "no memory");
	memcpy(bytes, image, image_size);
	for (size_t i = 1; i + 4 <= size; i += 4) {
		at = (data[i] | (size_t)data[i + 1] << 8 | (size_t)data[i + 2] << 16) % image_size;
		bytes[at] = data[i + 3];
	}
	if (data[0] & 1)
		length = at;
	if (data[0] & 2)
		memset(bytes + offsetof(struct leat_disk_header, open), 1, 1);
	if (data[0] & 4)
		mend(bytes);
	fd = open(path, O_RDWR | O_TRUNC);
	must(fd >= 0 && pwrite(fd, bytes, length, 0) == (ssize_t)length, "cannot write the table");
	close(fd);
	free(bytes);
}

static void
check(struct leat_disk_table *table)
{
	for (int i = 0; i < EXTENTS; i++) {
		struct leat_disk_extent want = extent_of(i), found;

		if (!leat_disk_find(table, &want.key, want.offset + 7, &found))
			continue;
		must(found.length && found.length <= LEAT_DISK_GRANULE && found.offset <= want.offset + 7 &&
		             want.offset + 7 - found.offset < found.length,
		     "an extent without the byte");
		must(memcmp(&found.key, &want.key, sizeof(want.key)) == 0, "another object");
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_disk_ticket ticket;
	struct leat_disk_usage usage;
	struct leat_disk_table table;

	if (size < 1)
		return 0;
	if (!image)
		make_image();
	write_table(data, size);
	open_table(&table);
	check(&table);
	add(&table);
	check(&table);
	must(leat_disk_lock(&table), "it cannot be locked");
	if (leat_disk_claim_range(&table, &(struct leat_disk_key){{9, 9}}, 0, 10, &ticket) == LEAT_DISK_MINE)
		leat_disk_release(&table, &ticket);
	for (int i = 0; i < EXTENTS; i++) {
		struct leat_disk_extent extent = extent_of(i);

		leat_disk_forget(&table, &extent);
	}
	(void)leat_disk_evict(&table, 0);
	leat_disk_unlock(&table);
	leat_disk_begin_epoch(&table);
	leat_disk_usage(&table, &usage);
	leat_disk_table_close(&table);
	return 0;
}
