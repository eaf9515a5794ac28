/* draw_specs.c - draw_specs FOLDER [COUNT SEED]: data of every source, and lines for tests/checksums.txt
 *
 * Makes FOLDER/sources, and FOLDER/spoiled, where files of the same data are damaged. With COUNT, prints so many
 * lines as `checksums` reads them, drawn at random from all sources and ops, without their checksums. */
#include <ftw.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "support/specs.h"

enum { MAX_EPOCH = 200 /* samples */, MAX_FILES = 1000 };

/* Where the data is to stay. */
static void
keep(const struct sources *sources, const char *folder, const char *name)
{
	char path[512];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	sources_forget_indexes(sources);
	assert_int_equal(rename(sources->folder, path), 0);
}

/* Paths of the files to damage, in an order that no file system decides; nftw hands no argument on. */
static char *paths[MAX_FILES];
static size_t path_count;

static int
note(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	const char *dot = strrchr(path, '.');

	(void)ftw;
	if (type == FTW_F && st->st_size > 0 && strcmp(dot, ".json") != 0 && strcmp(dot, ".csv") != 0) {
		assert_true(path_count < MAX_FILES);
		paths[path_count] = strdup(path);
		assert_non_null(paths[path_count++]);
	}
	return 0;
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Changes a byte of the second half: no header of a whole file. */
static void
flip_a_byte(const char *path, struct leat_rng *rng)
{
	FILE *file = fopen(path, "r+b");
	long size, at;
	int byte;

	assert_non_null(file);
	fseek(file, 0, SEEK_END);
	size = ftell(file);
	at = size / 2 + (long)leat_rng_below(rng, (uint64_t)(size - size / 2));
	fseek(file, at, SEEK_SET);
	byte = fgetc(file);
	fseek(file, at, SEEK_SET);
	fputc(byte ^ (1 << leat_rng_below(rng, 8)), file);
	assert_int_equal(fclose(file), 0);
}

/* Every other file. */
static void
spoil(const struct sources *sources)
{
	struct leat_rng rng;

	assert_int_equal(nftw(sources->folder, note, 16, FTW_PHYS), 0);
	qsort(paths, path_count, sizeof *paths, by_name);
	leat_rng_init(&rng, 1, 0, 0, leat_stream("spoil", 0));
	for (size_t i = 0; i < path_count; i++) {
		if (leat_rng_below(&rng, 2) == 0)
			flip_a_byte(paths[i], &rng);
		free(paths[i]);
	}
}

/* Every sixth spec reads the damaged data. */
static void
draw(struct specs *specs, unsigned number)
{
	static const struct sources good = {.folder = "@/sources"}, bad = {.folder = "@/spoiled"};
	bool spoiled = number % 6 == 5;
	unsigned world = number % 2 ? 2 + number % 3 : 1, rank;
	char text[sizeof specs->text + 200];

	specs_draw(specs);
	/* mixup and cutmix want pairs within a rank. */
	specs_batch(specs, world > 1 ? world * 2 * (1 + specs_below(specs, 6)) : 1 + specs_below(specs, 13));
	rank = specs_below(specs, world);
	sources_elsewhere(specs->sources, spoiled ? &bad : &good, specs->text, text, sizeof text);
	printf("- - %" PRIu64 " 2 %u/%u %s %s\n", leat_rng_u64(&specs->rng) >> 32, rank, world,
	       !spoiled            ? "fail"
	       : number % 12 == 11 ? "replace"
	                           : "skip",
	       text);
}

int
main(int argc, char **argv)
{
	static struct sources sources, damaged;
	static struct specs specs;

	if (argc != 2 && argc != 4) {
		fprintf(stderr, "usage: draw_specs FOLDER [COUNT SEED]\n");
		return 2;
	}
	setenv("TMPDIR", argv[1], 1);
	sources_make(&sources);
	sources_make(&damaged);
	spoil(&damaged);
	if (argc == 4) {
		specs_init(&specs, &sources, strtoull(argv[3], NULL, 10), MAX_EPOCH);
		for (unsigned i = 0; i < (unsigned)atoi(argv[2]); i++)
			draw(&specs, i);
	}
	keep(&sources, argv[1], "sources");
	keep(&damaged, argv[1], "spoiled");
	return 0;
}
